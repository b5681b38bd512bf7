#!lua
-- Takes a session.
--
-- KEYS[1]  the session
-- ARGV     who takes it; for how many microseconds
-- Answers: the number of the lease; or 'held', by whom, and for how many microseconds more.
local key = KEYS[1] .. ':lease'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local held = redis.call('HMGET', key, 'holder', 'over', 'last')
if held[1] and held[1] ~= ARGV[1] and tonumber(held[2]) > now then
    return {'held', held[1], string.format('%.0f', tonumber(held[2]) - now)}
end
-- No number is given twice, also if this key is gone or the clock is set back.
local fence = now
if held[3] and fence <= tonumber(held[3]) then fence = tonumber(held[3]) + 1 end
local text = string.format('%.0f', fence)
redis.call('HSET', key, 'fence', text, 'holder', ARGV[1], 'last', text,
    'over', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(ARGV[2] / 1000) + 86400000))
return {'taken', text}
