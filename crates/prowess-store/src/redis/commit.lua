#!lua
-- Changes a session, all of it or nothing, if it is as it was seen.
--
-- KEYS[1]  the session
-- ARGV     born and revision as they were seen ('' if there was none); whether it begins anew;
--          the lease it is committed with, or ''; the number it was announced with, or '', and up
--          to which number uses are counted; the new revision, state, now, end or '', when its
--          memory is freed or ''; what it uses, or ''; a channel and what it is told; the agent;
--          how many messages; messages; events
-- Answers: 'done' and the uses that are not counted yet; or why nothing was done.
local base = KEYS[1]
local born, revision, anew, fence = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local number, counted = ARGV[5], ARGV[6]
local uses, agent, messages = ARGV[12], ARGV[15], tonumber(ARGV[16])
local meta, transcript, events = base .. ':meta', base .. ':m:' .. agent, base .. ':events'
local agents, outbox, floor = base .. ':agents', base .. ':outbox', base .. ':floor'

-- Whoever was announced before somebody else has looked after this session announces again.
if number ~= '' then
    local last = redis.call('GET', floor)
    if last and tonumber(number) <= tonumber(last) then return {'late'} end
end
local lease = redis.call('HMGET', base .. ':lease', 'fence', 'over')
if fence ~= '' then
    if lease[1] ~= fence then return {'changed'} end
elseif lease[2] then
    local time = redis.call('TIME')
    if tonumber(lease[2]) > time[1] * 1000000 + time[2] then return {'changed'} end
end
local seen = redis.call('HMGET', meta, 'born', 'revision')
if (seen[1] or '') ~= born or (seen[2] or '') ~= revision then return {'changed'} end

if anew then
    for _, name in ipairs(redis.call('SMEMBERS', agents)) do
        redis.call('UNLINK', base .. ':m:' .. name)
    end
    redis.call('UNLINK', meta, agents, events)
    redis.call('HSET', meta, 'born', number, 'created', ARGV[9])
end
redis.call('HSET', meta, 'revision', ARGV[7], 'state', ARGV[8], 'updated', ARGV[9])
if ARGV[10] == '' then
    redis.call('HDEL', meta, 'expires')
else
    redis.call('HSET', meta, 'expires', ARGV[10])
end
if messages > 0 then redis.call('SADD', agents, agent) end
for i = 17, #ARGV do
    redis.call('RPUSH', i < 17 + messages and transcript or events, ARGV[i])
end
-- Whatever belongs to it ends with it.
if ARGV[11] ~= '' or redis.call('PTTL', meta) >= 0 then
    local keys = {meta, agents, events}
    for _, name in ipairs(redis.call('SMEMBERS', agents)) do
        keys[#keys + 1] = base .. ':m:' .. name
    end
    for _, key in ipairs(keys) do
        if ARGV[11] == '' then
            redis.call('PERSIST', key)
        else
            redis.call('PEXPIREAT', key, ARGV[11])
        end
    end
end
local answer = {'done'}
if number ~= '' then
    redis.call('SET', floor, number, 'EX', 86400)
    redis.call('ZREMRANGEBYSCORE', outbox, '-inf', counted)
    if uses ~= '' then redis.call('ZADD', outbox, number, number .. ':' .. uses) end
    for _, entry in ipairs(redis.call('ZRANGE', outbox, 0, -1)) do
        answer[#answer + 1] = entry
    end
end
redis.call('PUBLISH', ARGV[13], ARGV[14])
return answer
