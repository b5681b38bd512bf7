#!lua flags=no-writes
-- What a change of a session must know.
--
-- KEYS[1]  the session
-- Answers: when it was born, its revision, its state, when it ends; the number of the lease that
-- somebody has, who that is, and for how many microseconds more.
local meta = redis.call('HMGET', KEYS[1] .. ':meta', 'born', 'revision', 'state', 'expires')
local lease = redis.call('HMGET', KEYS[1] .. ':lease', 'fence', 'holder', 'over')
local time = redis.call('TIME')
local left = 0
if lease[3] then
    left = tonumber(lease[3]) - (time[1] * 1000000 + time[2])
end
return {meta[1], meta[2], meta[3], meta[4], lease[1], lease[2], string.format('%.0f', left)}
