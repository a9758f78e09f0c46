-- The state of one log, the server's time, and records behind a place, all of one moment.
--
-- KEYS: the state (a hash), the records (a stream).
-- ARGV: the place as `epoch-position`, how many records at most.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'epoch', 'last', 'closed', 'gone', 'owner',
  'lease_until', 'stop', 'meta', 'size', 'expires_at')
local records = {}
if ARGV[2] ~= '0' then
  records = redis.call('XRANGE', KEYS[2], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
end
local count = redis.call('XLEN', KEYS[2])
return {string.format('%.0f', now), state, records, count}
