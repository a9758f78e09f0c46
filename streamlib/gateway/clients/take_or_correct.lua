-- One client's buckets for requests and tokens; the same rules as `Bucket` in limits.py.
-- KEYS[1]: a hash of the levels (r, t) and of the time they are of (at, seconds).
-- ARGV: "take" or "correct"; limits for a minute of requests and tokens ("" where there is none);
--       tokens to take; the time in seconds ("": the server's).
-- Returns: the levels ("" where there is no limit) and the seconds to wait, as text: a number of a
-- script loses its fraction on the way to the client.
local MINUTE = 60
local operation, request_limit, token_limit, tokens, now = unpack(ARGV)
if now == '' then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
else
  now = tonumber(now)
end
local saved = redis.call('HMGET', KEYS[1], 'r', 't', 'at')
-- A clock that goes back would take what was never asked for.
local at = math.max(now, tonumber(saved[3]) or now)
local elapsed = at - (tonumber(saved[3]) or at)

local function level(limit, before)
  return math.min(limit, (tonumber(before) or limit) + elapsed * limit / MINUTE)
end

local function wait_for(limit, left, amount)
  return math.max(0, (math.min(amount, limit) - left) * MINUTE / limit)
end

local buckets = {}
if request_limit ~= '' then
  local limit = tonumber(request_limit)
  buckets.r = { limit = limit, left = level(limit, saved[1]), amount = 1 }
end
if token_limit ~= '' then
  local limit = tonumber(token_limit)
  buckets.t = { limit = limit, left = level(limit, saved[2]), amount = tonumber(tokens) }
end

local wait = 0
if operation == 'correct' then
  if buckets.r then buckets.r.amount = 0 end
else
  for _, bucket in pairs(buckets) do
    wait = math.max(wait, wait_for(bucket.limit, bucket.left, bucket.amount))
  end
end

local fields = { 'at', string.format('%.6f', at) }
local longest = 0
local answer = { '', '', string.format('%.6f', wait) }
for name, bucket in pairs(buckets) do
  if wait == 0 then
    bucket.left = math.min(bucket.limit, bucket.left - bucket.amount)
  end
  fields[#fields + 1] = name
  fields[#fields + 1] = string.format('%.6f', bucket.left)
  longest = math.max(longest, (bucket.limit - bucket.left) * MINUTE / bucket.limit)
  answer[name == 'r' and 1 or 2] = string.format('%.6f', bucket.left)
end
redis.call('HSET', KEYS[1], unpack(fields))
-- Full buckets need not be kept: a missing one is full.
redis.call('PEXPIRE', KEYS[1], math.ceil(longest * 1000) + 1000)
return answer
