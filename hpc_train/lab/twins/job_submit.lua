-- What the site's own job_submit plug-in refuses; `rules`, above, is from its profile.
-- Written for Slurm 22.05, where what a job does not say is nil or one of these numbers.

local function said(number)
  if number and number ~= slurm.NO_VAL and number ~= slurm.NO_VAL16 and number ~= slurm.INFINITE then
    return number
  end
end

local function items(text, pattern)
  local found = {}
  for word in string.gmatch(text or "", pattern) do
    found[#found + 1] = word
  end
  return found
end

-- GPUs in a list like gres:gpu:a100:4,gres:nvme:100; nil if there is no word of them.
local function gpus_in(text)
  local sum
  for _, item in ipairs(items(text, "[^,]+")) do
    local words = items(string.gsub(item, "^gres[:/]", ""), "[^:=]+")
    if words[1] == "gpu" then
      sum = (sum or 0) + (tonumber(words[#words]) or 1)
    end
  end
  return sum
end

-- Bounds as in a profile: 1, >=2,<16.
local function within(number, bounds)
  for sign, limit in string.gmatch(bounds, "([<>=]*)%s*(%d+)") do
    limit = tonumber(limit)
    local holds = (sign == "" and number == limit) or (sign == ">" and number > limit)
      or (sign == ">=" and number >= limit) or (sign == "<" and number < limit)
      or (sign == "<=" and number <= limit)
    if not holds then
      return false
    end
  end
  return true
end

-- The options of a script's #SBATCH lines; sbatch stops at the first command.
local function options_of(script)
  local found = {}
  for line in string.gmatch((script or "") .. "\n", "(.-)\n") do
    local words = string.match(line, "^#SBATCH%s+(.*)")
    if words then
      for option in string.gmatch(" " .. words, "%s%-%-([%a-]+)") do
        found[option] = true
      end
    elseif not string.match(line, "^%s*#") and string.match(line, "%S") then
      break
    end
  end
  return found
end

local function read(job)
  local nodes = said(job.min_nodes) or 1
  local tasks = said(job.ntasks_per_node)
  if not tasks or tasks == 0 then
    tasks = math.max(1, math.floor((said(job.num_tasks) or 1) / nodes))
  end
  local per_node = gpus_in(job.tres_per_node)
  local of_job = gpus_in(job.tres_per_job)
  local of_task = gpus_in(job.tres_per_task)
  if of_job then
    per_node = math.ceil(of_job / nodes)
  elseif of_task then
    per_node = of_task * tasks
  end
  local cpus = said(job.cpus_per_task)
  return {
    nodes = nodes,
    most_nodes = said(job.max_nodes),
    minutes = said(job.time_limit),
    account = job.account,
    qos = job.qos,
    partition = job.partition,
    constraint = job.features,
    mem = job.min_mem_per_node or job.min_mem_per_cpu or job.mem_per_tres,
    gpus_per_node = per_node,
    gpus = of_job or (per_node and per_node * nodes),
    gpus_of_job = of_job,
    cpus = cpus and cpus * tasks,
    exclusive = job.shared == 0,
  }
end

local function missing(job)
  local asked = { time = job.minutes }
  for _, key in ipairs(rules.required) do
    if (asked[key] or job[key]) == nil then
      local like = key == "account" and ", such as " .. rules.account_like or ""
      return string.format("needs %s %s%s", key == "account" and "an" or "a", key, like)
    end
  end
end

local function forbidden(job, options)
  for option, why in pairs(rules.forbidden) do
    local memory = string.sub(option, 1, 3) == "mem" and job.mem
    if options[option] or (option == "mem" and memory) then
      return string.format("refuses --%s: %s", option, why)
    end
  end
end

local function has_all(features, there)
  for _, feature in ipairs(features) do
    if not there[feature] then
      return false
    end
  end
  return true
end

-- The entries of the profile that lead to where this job goes; those that say most, first of all.
local function entries_of(job)
  local there, found, best = {}, {}, -1
  for _, word in ipairs(items(job.constraint, "[%w_.-]+")) do
    there[word] = true
  end
  for _, entry in ipairs(rules.entries) do
    local here = entry.any or entry.queue == (job.partition or "unnamed")
      or (not job.partition and entry.queue == rules.default)
    if here and has_all(entry.features, there) then
      local score = 4 * #entry.features
      if entry.qos == job.qos then
        score = score + 2
      elseif entry.qos == nil then
        score = score + 1
      end
      if score > best then
        found, best = {}, score
      end
      if score == best then
        found[#found + 1] = entry
      end
    end
  end
  return found
end

local function above(what, wanted, limit, who)
  if wanted and limit and wanted > limit then
    return string.format("%s = %d, but %s has at most %d", what, wanted, who, limit)
  end
end

local function below(what, wanted, limit, who)
  if wanted and limit and wanted < limit then
    return string.format("%s = %d, but %s needs at least %d", what, wanted, who, limit)
  end
end

-- What the last of the bounds that are for this job says stands instead of the entry's own word.
local function most(entry, key, job)
  local last
  for _, bound in ipairs(entry.bounds or {}) do
    if within(job.nodes, bound.for_nodes) and bound[key] then
      last = bound[key]
    end
  end
  return last or entry[key]
end

local function beyond(job, limited, who)
  local area = job.minutes and job.minutes * job.nodes
  return above("nodes", job.nodes, most(limited, "max_nodes", job), who)
    or above("GPUs of all nodes", job.gpus, most(limited, "max_gpus", job), who)
    or above("minutes", job.minutes, most(limited, "max_minutes", job), who)
    or above("nodes x minutes", area, limited.max_node_minutes, who)
end

-- --gpus is of the whole job, which may get more nodes than it asks for at least. Slurm 26.05
-- accepts more of them than one node has.
local function gpus(job, entry)
  if not job.gpus_of_job then
    return above("GPUs of a node", job.gpus_per_node, entry.gpus_per_node, entry.name)
  end
  local nodes = job.most_nodes or most(entry, "max_nodes", job) or entry.most_nodes
  if nodes and entry.node_gpus then
    local who = string.format("%s, with nodes = %d,", entry.name, nodes)
    return above("GPUs of all nodes", job.gpus_of_job, nodes * entry.node_gpus, who)
  end
end

local function cores(job, entry)
  local share = entry.cpus_per_gpu and job.gpus_per_node and entry.cpus_per_gpu * job.gpus_per_node
  if not share or share == 0 or not job.cpus or job.exclusive then
    return nil
  end
  local wrong = (entry.cpu_rule == "exact" and job.cpus ~= share)
    or (entry.cpu_rule == "max" and job.cpus > share)
  if wrong then
    return string.format("%d cores, but %s gives %d with %d GPUs", job.cpus, entry.name, share,
      job.gpus_per_node)
  end
end

-- The qos of the job, else the site's default, else the one that jobs of this entry name.
local function qos_of(job, entry)
  local named, usual
  for _, qos in ipairs(rules.qos) do
    local mine = not qos.partitions or qos.partitions[entry.name]
    if qos.name == (job.qos or entry.qos) then
      named = named or qos
    end
    if not job.qos and qos.default and mine then
      usual = usual or qos
    end
  end
  return usual or named
end

local function misfit(job, entry)
  local qos, who = qos_of(job, entry), entry.name
  if qos and qos.partitions and not qos.partitions[entry.name] then
    return string.format("qos %s is not for %s", qos.name, entry.name)
  end
  if entry.suffix and job.account and string.sub(job.account, -#entry.suffix) ~= entry.suffix then
    return string.format("account = %s, but %s needs %s at its end", job.account, who, entry.suffix)
  end
  return beyond(job, entry, who)
    or above("nodes", job.nodes, entry.nodes, who)
    or below("nodes", job.nodes, entry.min_nodes, who)
    or below("GPUs of all nodes", job.gpus, entry.min_gpus, who)
    or below("minutes", job.minutes, entry.min_minutes, who)
    or gpus(job, entry)
    or above("cores", job.cpus, entry.cpus_per_node, who)
    or cores(job, entry)
    or (qos and beyond(job, qos, "qos " .. qos.name))
end

-- The first entry that takes the job, or why each of them does not.
local function choose(job)
  local why
  for _, entry in ipairs(entries_of(job)) do
    local wrong = misfit(job, entry)
    if not wrong then
      return entry
    end
    why = (why and why .. "; " or "") .. wrong
  end
  return nil, why
end

function slurm_job_submit(job_desc, partitions, uid)
  local job = read(job_desc)
  local entry
  local why = missing(job) or forbidden(job, options_of(job_desc.script))
  if not why then
    entry, why = choose(job)
  end
  if why then
    slurm.log_user("%s", rules.site .. ": " .. why)
    return slurm.ERROR
  end
  local qos = entry and not job.qos and qos_of(job, entry)
  if qos then
    job_desc.qos = qos.name
  end
  if job.account and rules.charged then
    job_desc.account = rules.charged
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
