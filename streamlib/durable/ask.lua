-- One operation on the state of one log. Equals `ask` in rules.py, with the server's clock.
--
-- KEYS: the state (a hash), the records (a stream).
-- ARGV: the operation's name, the channel, the command that publishes, then its fields in the order
--       of rules.py; `append` has the record's lines last.
-- Returns: status, epoch, last, stop.

local TOMBSTONE_MS = 24 * 3600000

local state_key, records_key = KEYS[1], KEYS[2]
local operation, channel, publish = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local UNREADABLE = redis.error_reply('UNREADABLE somebody changed the state')

-- Keys of another type are unreadable, too: their errors are tables.
local function load_state()
  local saved = redis.pcall('HMGET', state_key, 'epoch', 'last', 'closed', 'gone', 'owner',
    'lease_until', 'stop', 'meta', 'size', 'expires_at')
  if saved.err then
    return nil, UNREADABLE
  end
  local is_stored = false
  for index = 1, 10 do
    is_stored = is_stored or saved[index]
  end
  if not is_stored then
    return nil
  end
  local loaded = {
    epoch = tonumber(saved[1]), last = tonumber(saved[2]), closed = saved[3] == '1',
    gone = saved[4] == '1', owner = saved[5], lease_until = tonumber(saved[6]), stop = saved[7],
    meta = saved[8], size = tonumber(saved[9]), expires_at = tonumber(saved[10])
  }
  for _, name in ipairs({'epoch', 'last', 'owner', 'lease_until', 'stop', 'meta', 'size',
    'expires_at'}) do
    local value = loaded[name]
    -- `tonumber` takes "nan" and "inf", too.
    if not value or (type(value) == 'number' and not (math.abs(value) < 2 ^ 53)) then
      return nil, UNREADABLE
    end
  end
  local record_count = redis.pcall('XLEN', records_key)
  if type(record_count) == 'table' then
    return nil, UNREADABLE
  end
  -- Records may be lost alone: then the log has no events, and its writer appends them again.
  if loaded.last > 0 and not loaded.gone and record_count == 0 then
    loaded.last, loaded.size, loaded.closed = 0, 0, false
  end
  return loaded
end

-- Numbers as text without an exponent.
local function text(number)
  return string.format('%.0f', number)
end

local function flag(value)
  return value and '1' or '0'
end

-- The meta may be long, so it is written only where it changes.
local function save(state, with_meta)
  if with_meta then
    redis.call('HSET', state_key, 'meta', state.meta)
  end
  redis.call('HSET', state_key, 'epoch', text(state.epoch), 'last', text(state.last),
    'closed', flag(state.closed), 'gone', flag(state.gone), 'owner', state.owner,
    'lease_until', text(state.lease_until), 'stop', state.stop,
    'size', text(state.size), 'expires_at', text(state.expires_at))
  if state.gone then
    redis.call('DEL', records_key)
    redis.call('PEXPIREAT', state_key, text(state.expires_at))
  else
    redis.call('PEXPIREAT', state_key, text(state.expires_at + TOMBSTONE_MS))
    redis.call('PEXPIREAT', records_key, text(state.expires_at))
  end
end

local function tombstone(state, expires_at)
  return {
    epoch = state.epoch, last = state.last, closed = false, gone = true, owner = '',
    lease_until = 0, stop = '', meta = '', size = 0, expires_at = expires_at
  }
end

-- The epoch of the records that are left where the state is lost: a new log takes a later one.
local function epoch_of_records()
  local left = redis.pcall('XREVRANGE', records_key, '+', '-', 'COUNT', 1)
  return left[1] and tonumber(string.match(left[1][1], '^%d+')) or 0
end

-- The epoch of a state that nobody can read.
local function epoch_of_unreadable()
  local epoch = tonumber(redis.pcall('HGET', state_key, 'epoch')) or 0
  if not (math.abs(epoch) < 2 ^ 53) then
    epoch = 0
  end
  return math.max(epoch, epoch_of_records())
end

local function result(status, state)
  return {status, state.epoch, state.last, state.stop}
end

-- What followers are told: a record, or nothing but that something happened.
local function push(message)
  redis.call(publish, channel, message)
end

local state, fault = load_state()
if fault and operation == 'delete' then
  -- What nobody can read may be deleted all the same, and its writer does not bring it back.
  state = {epoch = epoch_of_unreadable(), last = 0, expires_at = now + TOMBSTONE_MS}
  redis.call('DEL', state_key)
elseif fault then
  return fault
end
if state and now >= state.expires_at then
  local forgotten_at = state.expires_at + TOMBSTONE_MS
  if state.gone or now >= forgotten_at then
    redis.call('DEL', state_key, records_key)
    state = nil
  else
    state = tombstone(state, forgotten_at)
    save(state, true)
  end
end

if operation == 'open' then
  local owner, lease_ms, epoch = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
  if not state or (state.gone and epoch == 0) then
    local first_epoch = math.max(1, epoch)
    if state then
      first_epoch = state.epoch + 1
    else
      -- The state may be lost alone: the records behind it are of another log.
      if epoch == 0 then
        first_epoch = math.max(1, epoch_of_records() + 1)
      end
      redis.call('DEL', records_key)
    end
    state = {
      epoch = first_epoch, last = 0, closed = false, gone = false, owner = owner,
      lease_until = now + lease_ms, stop = '', meta = ARGV[7], size = 0,
      expires_at = now + tonumber(ARGV[8])
    }
  elseif state.gone then
    return result('gone', state)
  elseif state.closed then
    return result('closed', state)
  elseif owner ~= '' and (state.owner == '' or state.owner == owner) then
    state.owner = owner
    state.lease_until = now + lease_ms
  elseif now < state.lease_until or (owner == '' and state.owner ~= '') then
    return result('held', state)
  else
    if owner == '' then
      state.meta = ARGV[7]
    end
    state.epoch = state.epoch + 1
    state.owner = owner
    state.lease_until = now + lease_ms
  end
  save(state, true)
  push('')
  return result('ok', state)
end

if not state then
  return {'missing', 0, 0, ''}
end
if state.gone then
  return result('gone', state)
end

if operation == 'append' then
  local owner, epoch = ARGV[4], tonumber(ARGV[5])
  local first, last, size = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
  local lease_ms, closes = tonumber(ARGV[9]), ARGV[10] == '1'
  local keep_ms, max_bytes, lines = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13]
  if state.epoch ~= epoch or state.owner ~= owner then
    return result('fenced', state)
  end
  if state.closed then
    return result('closed', state)
  end
  if first ~= state.last + 1 then
    return result('behind', state)
  end
  if size > 0 and state.size + size > max_bytes and not closes then
    return result('full', state)
  end
  state.last = last
  state.size = state.size + size
  state.lease_until = now + lease_ms
  if closes then
    state.closed = true
    state.expires_at = now + keep_ms
  end
  if size > 0 then
    redis.call('XADD', records_key, text(epoch) .. '-' .. text(last), 'f', text(first), 'l', lines)
  end
  save(state)
  if size > 0 then
    -- A blank behind the numbers says that nothing follows: older versions read the numbers too.
    local ending = closes and ' \n' or '\n'
    push(text(epoch) .. ' ' .. text(first) .. ' ' .. text(last) .. ending .. lines)
  elseif closes then
    push('')
  end
  return result('ok', state)
end

if operation == 'delete' then
  state = tombstone(state, now + TOMBSTONE_MS)
  save(state, true)
  push('')
  return result('ok', state)
end

-- stop
if state.closed then
  return result('closed', state)
end
if state.stop == '' then
  state.stop = ARGV[4]
  save(state)
end
push('')
return result('ok', state)
