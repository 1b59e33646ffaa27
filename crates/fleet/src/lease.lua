-- Grants a node its lease of a class's budget. One call is one step: nothing else runs meanwhile.
--
-- KEYS: state (sums), nodes, expiry. The class's settings lie in a fourth key of the same hash slot. It is not among
-- KEYS, as nodes may only read it, and the server's access lists take all of a script's keys for written ones.
-- ARGV: version, node, sequence, run, has, wants, weight (0: the node leaves).
-- Returns {'ok', grant, floor, lease, cap, nodes, entitled, learning}, or a word that says why not.
--
-- What holds after each step: the sum of all `held` is at most cap - nmax * floor, the pool, as long as no node
-- reports more than it was granted; and `held` of a node is at least what it may be using:
--  - A grant is cut to what is free.
--  - A node whose reply is lost goes on with what it has, so a shrink is free only when the node says, by its next
--    call, that it has the less.
--  - A call that arrives after a later one of its node changes nothing.
--  - A node's entry is dropped 5 % after the node itself drops the lease, by a clock that no setting of the
--    server's time moves by more than a quarter of a lease.
--  - A server that was restarted knows nothing. For 1.1 leases it grants what nodes report to have.
-- Amounts are whole numbers, below 2^53, so sums stay exact.
local VERSION = '1'
local state, nodes, expiry = KEYS[1], KEYS[2], KEYS[3]
local class = string.sub(state, 1, -#':lease:state' - 1) .. ':class'
local node, seq, run = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local has, wants, weight = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local set = redis.call('HMGET', class, 'version', 'cap', 'floor', 'nmax', 'lease', 'longest')
if not set[1] then
    return {redis.call('EXISTS', class) == 1 and 'foreign' or 'unknown'}
end
if set[1] ~= VERSION or ARGV[1] ~= VERSION then
    return {'version', set[1]}
end
local cap, floor, nmax, lease = tonumber(set[2]), tonumber(set[3]), tonumber(set[4]), tonumber(set[5])
local longest = tonumber(set[6])
if not (cap and floor and nmax and lease and longest) then
    return {'foreign'}
end
local pool = math.max(0, cap - nmax * floor)

local time = redis.call('TIME')
local wall = time[1] * 1000 + math.floor(time[2] / 1000)
local sums = redis.call('HMGET', state, 'run', 'wall', 'clock', 'learn', 'held', 'content', 'hungry', 'weights', 'audit')
local clock, learn, held, content, hungry, weights, audit

local function forget_all()
    redis.call('DEL', state, nodes, expiry)
    clock, learn = 0, math.floor(longest * 1.1)
    held, content, hungry, weights, audit = 0, 0, 0, 0, 0
end

-- An entry: sequence, held, content or hungry, wants, weight.
local function parse(entry)
    local q, h, m, w, g = string.match(entry, '^(%d+) (%d+) ([ch]) (%d+) (%d+)$')
    return tonumber(q), tonumber(h), m, tonumber(w), tonumber(g)
end

local function add(sign, h, m, w, g)
    held, weights = held + sign * h, weights + sign * g
    if m == 'c' then
        content = content + sign * w
    else
        hungry = hungry + sign * g
    end
end

local whole = sums[1] == run
for i = 2, 9 do
    sums[i] = tonumber(sums[i])
    whole = whole and sums[i]
end
-- A server that is short of memory may have dropped one of them: the sums would count what is gone, or what nothing ends.
whole = whole and redis.call('EXISTS', nodes) == redis.call('EXISTS', expiry)
if whole then
    local passed = math.min(math.max(wall - sums[2], 0), math.floor(lease / 4))
    clock, learn, held, content = sums[3] + passed, sums[4], sums[5], sums[6]
    hungry, weights, audit = sums[7], sums[8], sums[9]
else
    forget_all()
end

local function drop(name)
    local entry = redis.call('HGET', nodes, name)
    redis.call('ZREM', expiry, name)
    if entry then
        redis.call('HDEL', nodes, name)
        local q, h, m, w, g = parse(entry)
        if not q then
            return forget_all()
        end
        add(-1, h, m, w, g)
    end
end

-- The sums again from the entries, once an hour: whatever was wrong stays so for no longer.
if clock >= audit + 3600000 then
    held, content, hungry, weights, audit = 0, 0, 0, 0, clock
    local all = redis.call('HVALS', nodes)
    for _, entry in ipairs(all) do
        local q, h, m, w, g = parse(entry)
        if not q then
            forget_all()
            break
        end
        add(1, h, m, w, g)
    end
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', clock, 'LIMIT', 0, 100)) do
    drop(name)
end

local function save()
    redis.call('HSET', state, 'run', run, 'wall', wall, 'clock', clock, 'learn', learn, 'held', held,
        'content', content, 'hungry', hungry, 'weights', weights, 'audit', audit)
end

local before = redis.call('HGET', nodes, node)
if before then
    local q = parse(before)
    if q and seq <= q then
        save()
        return {'stale'}
    end
    drop(node)
end
if weight == 0 then
    save()
    return {'left'}
end
local count = redis.call('ZCARD', expiry)
if count >= nmax then
    save()
    return {'full', count}
end

-- Each node gets what it wants up to one level, the same for all relative to their weights: the level at which
-- those who want more use up what the others leave.
local level = math.max((pool - content) / (hungry + weight), pool / (weights + weight))
local entitled, mode = wants, 'c'
if wants > level * weight then
    entitled, mode = math.floor(level * weight), 'h'
end
local free = math.max(0, pool - held)
local learning = clock < learn
local grant = math.min(learning and has or entitled, free)
local kept = math.max(grant, has)
add(1, kept, mode, wants, weight)
redis.call('HSET', nodes, node, string.format('%.0f %.0f %s %.0f %.0f', seq, kept, mode, wants, weight))
redis.call('ZADD', expiry, clock + math.floor(lease * 1.05), node)
save()
return {'ok', grant, floor, lease, cap, count + 1, entitled, learning and learn - clock or 0}
