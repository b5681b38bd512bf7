#!lua
-- Counts uses, each once, and forgets that a session was announced.
--
-- KEYS[1]  the registry
-- ARGV     the session or ''; the number of the announcement to forget, or ''; whether the session
--          is there; how many agents of a skill are counted apart on one day; what the others are
--          called; then for each list of uses: its number, how many rows, rows of 12; how many
--          sessions, rows of 3
local base, session, forget, there = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1'
local most, others = tonumber(ARGV[4]), ARGV[5]
local at = 6

-- The most that a counter holds is enough.
local function add(key, field, amount)
    local sum = redis.pcall('HINCRBY', key, field, amount)
    if type(sum) == 'table' then redis.call('HSET', key, field, '9223372036854775807') end
end

local function last(key, field, time)
    local before = redis.call('HGET', key, field)
    if not before or tonumber(before) < tonumber(time) then redis.call('HSET', key, field, time) end
end

-- Whether an agent is counted apart. The first ones of a day are.
local function apart(skill, day, agent)
    local key, field = base .. ':agents:' .. skill, day .. '\0' .. agent
    if redis.call('HEXISTS', key, field) == 1 then return true end
    if tonumber(redis.call('HGET', key, day) or '0') >= most then return false end
    redis.call('HSET', key, field, 1)
    redis.call('HINCRBY', key, day, 1)
    return true
end

local function count(row)
    local skill, day, kind, version, agent, code =
        ARGV[row], ARGV[row + 1], ARGV[row + 2], ARGV[row + 3], ARGV[row + 4], ARGV[row + 5]
    if agent ~= '' and not apart(skill, day, agent) then agent = others end
    local usage = base .. ':usage:' .. skill
    local field = table.concat({day, kind, version, agent, code}, '\0') .. '\0'
    for i, name in ipairs({'count', 'errors', 'elapsed', 'bytes', 'tokens'}) do
        add(usage, field .. name, ARGV[row + 5 + i])
    end
    last(usage, field .. 'last', ARGV[row + 11])
    redis.call('SADD', base .. ':used', skill)
    if kind == 'load' then last(base .. ':loads', skill, ARGV[row + 11]) end
end

local function meet(row)
    local skill, who, day = ARGV[row], ARGV[row + 1], ARGV[row + 2]
    redis.call('SADD', base .. ':users:' .. skill, who)
    if redis.call('SADD', base .. ':visits:' .. skill, day .. '\0' .. who) == 1 then
        redis.call('HINCRBY', base .. ':days:' .. skill, day, 1)
    end
end

local announced, counted
if session ~= '' then
    local pending = redis.call('HGET', base .. ':pending', session)
    -- Somebody else has counted everything.
    if not pending then return 0 end
    announced, counted = string.match(pending, '^(%d+) (%d+)$')
end
while at <= #ARGV do
    local number, rows = ARGV[at], tonumber(ARGV[at + 1])
    local sessions = tonumber(ARGV[at + 2 + 12 * rows])
    local first = at + 2
    at = first + 12 * rows + 1
    if session == '' or tonumber(number) > tonumber(counted) then
        for row = 0, rows - 1 do count(first + 12 * row) end
        for row = 0, sessions - 1 do meet(at + 3 * row) end
        counted = number
    end
    at = at + 3 * sessions
end
if session ~= '' then
    if announced == forget then
        redis.call('HDEL', base .. ':pending', session)
        if not there then redis.call('ZREM', base .. ':sessions', session) end
    else
        redis.call('HSET', base .. ':pending', session, announced .. ' ' .. counted)
    end
end
return 1
