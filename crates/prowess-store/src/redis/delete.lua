#!lua flags=allow-oom
-- Removes a session with everything but what is not counted yet.
--
-- KEYS[1]  the session
-- ARGV     the number it was announced with; up to which number uses are counted; only if its end
--          is not after this, or ''; a channel and what it is told
-- Answers: 'late' if somebody else has looked after it since it was announced; 'kept' if its end is
-- later; else 'gone', whether it was there, its end or '', and the uses that are not counted yet.
local base = KEYS[1]
local meta, agents, events = base .. ':meta', base .. ':agents', base .. ':events'
local outbox, floor = base .. ':outbox', base .. ':floor'
local last = redis.call('GET', floor)
if last and tonumber(ARGV[1]) <= tonumber(last) then return {'late'} end
local there = redis.call('EXISTS', meta)
local expires = redis.call('HGET', meta, 'expires')
if ARGV[3] ~= '' and there == 1 and (not expires or tonumber(expires) > tonumber(ARGV[3])) then
    return {'kept'}
end
for _, name in ipairs(redis.call('SMEMBERS', agents)) do
    redis.call('UNLINK', base .. ':m:' .. name)
end
redis.call('UNLINK', meta, agents, events)
redis.call('SET', floor, ARGV[1], 'EX', 86400)
redis.call('ZREMRANGEBYSCORE', outbox, '-inf', ARGV[2])
if there == 1 then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
local answer = {'gone', tostring(there), expires or ''}
for _, entry in ipairs(redis.call('ZRANGE', outbox, 0, -1)) do
    answer[#answer + 1] = entry
end
return answer
