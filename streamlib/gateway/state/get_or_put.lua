-- One operation on the state of one client, by the server's clock.
--
-- KEYS: its entries (a hash), when each was used last (a sorted set), bytes of all (a number).
-- ARGV: milliseconds that an entry lives, then
--   `get`, keys …                        returns their values; they live on from now
--   `put`, bytes of all, key, value      deletes the least recently used entries over the limit

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lifetime = tonumber(ARGV[1])

-- A server that evicts takes one key of the three: the rest would count what is no longer there, and
-- no later entry of the client would have room.
if redis.call('EXISTS', unpack(KEYS)) < #KEYS then
  redis.call('DEL', unpack(KEYS))
end

local function drop(key)
  local size = redis.call('HSTRLEN', KEYS[1], key)
  if redis.call('HDEL', KEYS[1], key) == 1 then
    redis.call('DECRBY', KEYS[3], size)
  end
  redis.call('ZREM', KEYS[2], key)
end

for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - lifetime)) do
  drop(key)
end

local values = {}
if ARGV[2] == 'get' then
  for position = 3, #ARGV do
    local value = redis.call('HGET', KEYS[1], ARGV[position])
    if value then
      redis.call('ZADD', KEYS[2], now, ARGV[position])
    end
    values[#values + 1] = value
  end
else
  local limit, key, value = tonumber(ARGV[3]), ARGV[4], ARGV[5]
  drop(key)
  redis.call('HSET', KEYS[1], key, value)
  redis.call('ZADD', KEYS[2], now, key)
  local size = redis.call('INCRBY', KEYS[3], #value)
  while size > limit do
    drop(redis.call('ZRANGE', KEYS[2], 0, 0)[1])
    size = tonumber(redis.call('GET', KEYS[3]))
  end
end

-- A client that is gone leaves nothing.
for _, name in ipairs(KEYS) do
  redis.call('PEXPIRE', name, lifetime)
end
return values
