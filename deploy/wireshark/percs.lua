-- Wireshark dissector for captures of `percsctl trace --format pcapng` (docs/look.md), link type
-- USER0. Install: copy it to Wireshark's folder of Lua plugins, or name it for one call:
--   tshark -X lua_script:percs.lua -r capture.pcapng -Y 'percs.vc == 2 && percs.drop'
-- All numbers are little-endian. Frame: what happened. Packet: its header, then its payload.

local percs = Proto("percs", "PERCS fabric")
local FRAME_VERSION, FRAME_NUMBERS, PACKET_HEADER = 1, 88, 80
local KINDS = {[0] = "raw", "data", "ack", "cau", "management", "window", "operation"}
local EVENTS = {[0] = "created", "sent", "delivered", "dropped"}
local MODES = {[0] = "hw_direct", "hw_direct_striped", "sw_indirect", "hw_indirect"}
local WINDOW_TYPES = {[0] = "immediate", "fifo", "ip", "ip_fragment", "rdma_write",
  "rdma_write_fifo", "rdma_read", "rdma_read_data", "atomic", "atomic_answer", "answer", "progress"}
local STATUSES = {[0] = "ok", "no_window_free", "window_taken", "no_such_window", "window_closed",
  "not_configured", "wrong_key", "not_registered", "out_of_range", "read_only", "overlap",
  "no_memory", "too_large", "empty", "unaligned", "bad_size", "no_such_node", "send_fifo_full",
  "receive_fifo_full", "no_immediate_buffer", "too_many_operations", "no_route", "unreachable",
  "no_answer", "remote_window_closed", "invalid", "no_device", "on_device"}
local ATOMICS = {[0] = "add", "and", "or", "xor", "compare_swap"}
local CAU_TYPES = {[0] = "data", "ack", "grant", "grant_seen", "probe"}
local CAU_OPERATIONS = {[0] = "reduce", "multicast"}
local REDUCE_OPS = {[0] = "nop", "sum", "prod", "min", "max", "and", "or", "xor"}
local OPERAND_TYPES = {[0] = "int32", "uint32", "int64", "uint64", "float", "double"}
local DATA, ACK, CAU, MANAGEMENT, WINDOW, OPERATION = 1, 2, 3, 4, 5, 6
local IP, IP_FRAGMENT, ATOMIC, ATOMIC_ANSWER, ANSWER = 2, 3, 8, 9, 10

local f = {}
local function field(name, kind, title, base, values)
  f[name] = ProtoField[kind]("percs." .. name:gsub("__", "."), title, base, values)
end
-- Trees, each of which is also a filter: `percs.window`.
local function group(name, title) f[name] = ProtoField.none("percs." .. name, title) end
group("frame", "Event")
group("packet", "Packet")
group("message", "Message layer")
group("window", "Window")
group("update", "Update")
group("cau", "CAU")
group("management", "Management")
-- The frame.
field("version", "uint8", "Version", base.DEC)
field("event", "uint8", "Event", base.DEC, EVENTS)
field("flags", "uint8", "Flags", base.HEX)
field("drop", "bool", "Dropped")
field("delivered", "bool", "Delivered")
field("part", "bool", "Fewer flits than the packet has")
field("hop", "uint8", "Hop", base.DEC)
field("vc", "uint8", "Virtual channel", base.DEC)
field("input_vc", "uint8", "Virtual channel it came on", base.DEC)
field("time", "uint64", "Virtual time (ps)", base.DEC)
field("until", "uint64", "Last flit left (ps)", base.DEC)
field("arrived", "uint64", "Head arrived (ps)", base.DEC)
field("flits_sent", "uint8", "Flits of this event", base.DEC)
field("grants", "uint8", "Commitments of the output", base.DEC)
local WAITS = {"queue", "serialisation", "arbitration", "vc", "credit", "replay"}
for _, wait in ipairs(WAITS) do
  field("wait__" .. wait, "uint64", "Waited for " .. wait .. " (ps)", base.DEC)
end
local NAMES = {"node", "input", "output", "src", "dst", "reason"}
for _, name in ipairs(NAMES) do field(name, "string", name) end
-- The packet.
field("kind", "uint8", "Kind", base.DEC, KINDS)
field("mode", "uint8", "Route mode", base.DEC, MODES)
field("flits", "uint8", "Flits", base.DEC)
field("src_node", "uint32", "Source node", base.DEC)
field("dst_node", "uint32", "Destination node", base.DEC)
field("src_window", "uint16", "Source window", base.DEC)
field("dst_window", "uint16", "Destination window", base.DEC)
field("bytes", "uint16", "Payload bytes", base.DEC)
field("middle", "uint16", "Middle supernode", base.DEC)
field("epoch", "uint32", "Epoch of its route tables", base.DEC)
field("sequence", "uint64", "Sequence", base.DEC)
field("created", "uint64", "Created (ps)", base.DEC)
field("payload", "bytes", "Payload")
-- Message layer.
field("flow__sequence", "uint32", "Packet of its flow", base.DEC)
field("flow__base", "uint32", "Nothing below is sent again", base.DEC)
field("message__number", "uint32", "Message", base.DEC)
field("message__tag", "uint32", "Tag", base.DEC)
field("message__bytes", "uint64", "Bytes of the message", base.DEC)
field("message__offset", "uint64", "Offset in the message", base.DEC)
field("message__created", "uint64", "Message created (ps)", base.DEC)
field("ack__missing", "uint32", "Lowest packet not received", base.DEC)
field("ack__bitmap", "uint64", "Received above it", base.HEX)
-- Windows.
field("window__type", "uint8", "Type", base.DEC, WINDOW_TYPES)
field("window__status", "uint8", "Status", base.DEC, STATUSES)
field("window__notify", "bool", "Notifies")
field("window__ack_at_once", "bool", "Acknowledged at once")
field("window__job", "uint16", "Job", base.DEC)
field("window__context", "uint16", "Context", base.DEC)
field("window__request", "uint32", "Operation or datagram", base.DEC)
field("window__address", "uint64", "Address", base.HEX)
field("window__length", "uint32", "Bytes of the operation or datagram", base.DEC)
field("atomic__op", "uint8", "Atomic operation", base.DEC, ATOMICS)
field("atomic__size", "uint8", "Size", base.DEC)
field("atomic__fetch", "bool", "Fetches")
field("atomic__address", "uint64", "Address", base.HEX)
field("atomic__operand", "uint64", "Operand", base.DEC)
field("atomic__compare", "uint64", "Compare", base.DEC)
field("atomic__value", "uint64", "Value before", base.DEC)
-- CAU.
field("cau__type", "uint8", "Type", base.DEC, CAU_TYPES)
field("cau__operation", "uint8", "Operation", base.DEC, CAU_OPERATIONS)
field("cau__tree", "uint16", "Tree", base.DEC)
field("cau__generation", "uint32", "Generation of the tree", base.DEC)
field("cau__from", "uint16", "From vertex", base.DEC)
field("cau__to", "uint16", "To vertex", base.DEC)
field("cau__link_sequence", "uint32", "Sequence on the tree link", base.DEC)
field("cau__sequence", "uint32", "Sequence of the operation", base.DEC)
field("cau__root", "uint32", "Root", base.DEC)
field("cau__grant", "uint32", "May be sent up to", base.DEC)
field("cau__stored", "uint32", "Stored above", base.HEX)
field("cau__op", "uint8", "Reduction", base.DEC, REDUCE_OPS)
field("cau__operand", "uint8", "Operands", base.DEC, OPERAND_TYPES)
field("cau__size", "uint8", "Bytes of operands", base.DEC)
-- Management.
field("management__request", "uint32", "Request", base.DEC)
field("management__directed", "bool", "To the neighbour behind a link")
field("management__answer", "bool", "Answer")
field("management__node", "uint32", "Who answers", base.DEC)
field("management__port", "uint8", "Port it came in on", base.DEC)

local all = {}
for _, one in pairs(f) do all[#all + 1] = one end
percs.fields = all
local too_short = ProtoExpert.new("percs.short", "The record ends inside a header",
  expert.group.MALFORMED, expert.severity.ERROR)
local unknown_version = ProtoExpert.new("percs.version.unknown", "Written by another version",
  expert.group.UNDECODED, expert.severity.WARN)
local not_kept = ProtoExpert.new("percs.not_kept", "The packet's header was not kept",
  expert.group.UNDECODED, expert.severity.NOTE)
local dropped = ProtoExpert.new("percs.dropped", "Packet dropped",
  expert.group.SEQUENCE, expert.severity.WARN)
percs.experts = {too_short, unknown_version, not_kept, dropped}

local function text(values, number) return values[number] or tostring(number) end

-- Datagrams that the HFI took apart. By record, since Wireshark may show records in any order:
-- `parts` collects, by receiver, source and datagram, in the first pass; `whole` has, by number of
-- the record that brought the last part, what they made.
local parts, whole = {}, {}
function percs.init() parts, whole = {}, {} end

local function ip_version(range)
  return range:len() > 0 and bit.rshift(range(0, 1):uint(), 4) or 0
end

local function dissect_ip(tvb, pinfo, root)
  local version = ip_version(tvb())
  local name = version == 4 and "ip" or version == 6 and "ipv6"
  if name then Dissector.get(name):call(tvb, pinfo, root) end
end

local function collect(info, w, payload, pinfo)
  if info.event ~= 2 or payload:len() == 0 or pinfo.visited then return end
  local key = info.node .. " " .. info.source .. " " .. w.request
  local datagram = parts[key] or {have = 0, pieces = {}}
  parts[key] = datagram
  if not datagram.pieces[w.address] then
    datagram.pieces[w.address] = payload:bytes()
    datagram.have = datagram.have + payload:len()
  end
  if datagram.have < w.length then return end
  local bytes, at = ByteArray.new(), 0
  while datagram.pieces[at] do
    bytes:append(datagram.pieces[at])
    at = at + datagram.pieces[at]:len()
  end
  if bytes:len() == w.length then whole[pinfo.number] = bytes end
  parts[key] = nil
end

local function dissect_atomics(payload, tree, answer)
  local step = answer and 8 or 32
  for at = 0, payload:len() - step, step do
    if answer then
      tree:add_le(f.atomic__value, payload(at, 8))
    else
      local update = tree:add(f.update, payload(at, step))
      update:append_text(": " .. text(ATOMICS, payload(at + 24, 1):uint()))
      update:add_le(f.atomic__address, payload(at, 8))
      update:add_le(f.atomic__operand, payload(at + 8, 8))
      update:add_le(f.atomic__compare, payload(at + 16, 8))
      update:add(f.atomic__op, payload(at + 24, 1))
      update:add(f.atomic__size, payload(at + 25, 1))
      update:add(f.atomic__fetch, payload(at + 26, 1))
    end
  end
end

local function dissect_window(h, payload, tree, pinfo, root, info)
  local w = {type = h(73, 1):uint(), request = h(52, 4):le_uint(), length = h(56, 4):le_uint(),
             address = h(64, 8):le_uint64():tonumber()}
  local t = tree:add(f.window, h())
  t:append_text(": " .. text(WINDOW_TYPES, w.type))
  t:add(f.window__type, h(73, 1))
  t:add(f.window__status, h(74, 1))
  t:add(f.window__notify, h(75, 1), bit.band(h(75, 1):uint(), 1) ~= 0)
  t:add(f.window__ack_at_once, h(72, 1), bit.band(h(72, 1):uint(), 1) ~= 0)
  t:add_le(f.window__job, h(62, 2))
  t:add_le(f.window__context, h(60, 2))
  t:add_le(f.window__request, h(52, 4))
  t:add_le(f.window__address, h(64, 8))
  t:add_le(f.window__length, h(56, 4))
  info.what = text(WINDOW_TYPES, w.type)
  if w.type == ANSWER then info.what = "answer " .. text(STATUSES, h(74, 1):uint()) end
  if not payload then return end
  if w.type == ATOMIC or w.type == ATOMIC_ANSWER then
    dissect_atomics(payload, t, w.type == ATOMIC_ANSWER)
  elseif w.type == IP then
    dissect_ip(payload:tvb(), pinfo, root)
  elseif w.type == IP_FRAGMENT then
    collect(info, w, payload, pinfo)
    if whole[pinfo.number] then dissect_ip(whole[pinfo.number]:tvb("Datagram"), pinfo, root) end
  end
end

local function dissect_message(h, tree, info)
  local t = tree:add(f.message, h(40, 40))
  if info.kind == ACK then
    t:add_le(f.ack__missing, h(40, 4))
    t:add_le(f.ack__bitmap, h(64, 8))
    return
  end
  t:add_le(f.flow__sequence, h(40, 4))
  t:add_le(f.flow__base, h(44, 4))
  t:add_le(f.message__number, h(48, 4))
  if info.kind ~= DATA then return end  -- the rest is the operation's own
  t:add_le(f.message__tag, h(52, 4))
  t:add_le(f.message__bytes, h(56, 8))
  t:add_le(f.message__offset, h(64, 8))
  t:add_le(f.message__created, h(72, 8))
end

local function dissect_cau(h, tree, info)
  local kind = bit.band(h(54, 1):uint(), 15)
  local operation = bit.rshift(h(54, 1):uint(), 4)
  local t = tree:add(f.cau, h(40, 40))
  t:append_text(": " .. text(CAU_TYPES, kind))
  t:add(f.cau__type, h(54, 1), kind)
  t:add(f.cau__operation, h(54, 1), operation)
  t:add_le(f.cau__tree, h(52, 2))
  t:add_le(f.cau__generation, h(56, 4))
  t:add_le(f.cau__from, h(60, 2))
  t:add_le(f.cau__to, h(62, 2))
  t:add_le(f.cau__link_sequence, h(40, 4))
  local reports = kind == 1 or kind == 2
  t:add_le(reports and f.cau__grant or f.cau__root, h(44, 4))
  t:add_le(reports and f.cau__stored or f.cau__sequence, h(48, 4))
  t:add(f.cau__op, h(55, 1), bit.band(h(55, 1):uint(), 15))
  t:add(f.cau__operand, h(55, 1), bit.rshift(h(55, 1):uint(), 4))
  t:add(f.cau__size, h(64, 1))
  info.what = "cau " .. text(CAU_OPERATIONS, operation) .. " " .. text(CAU_TYPES, kind)
end

local function dissect_management(h, tree, info)
  local tag = h(52, 4):le_uint()
  local t = tree:add(f.management, h(40, 40))
  t:add_le(f.management__request, h(40, 4))
  t:add(f.management__directed, h(52, 4), bit.band(tag, 1) ~= 0)
  t:add(f.management__answer, h(52, 4), bit.band(tag, 2) ~= 0)
  info.what = bit.band(tag, 1) ~= 0 and "probe" or "ping"
  if bit.band(tag, 2) == 0 then return end
  t:add(f.management__port, h(64, 1))
  t:add(f.management__node, h(65, 4), h(65, 4):le_uint())
  info.what = info.what .. " answer"
end

local function dissect_packet(h, payload, tree, pinfo, root, info)
  info.kind = h(0, 1):uint()
  info.source = h(4, 4):le_uint()
  info.sequence = tostring(h(24, 8):le_uint64())
  info.what = text(KINDS, info.kind)
  local t = tree:add(f.packet, h())
  t:append_text(": " .. info.what)
  t:add(f.kind, h(0, 1))
  t:add(f.mode, h(1, 1))
  t:add(f.flits, h(2, 1))
  t:add_le(f.src_node, h(4, 4))
  t:add_le(f.dst_node, h(8, 4))
  t:add_le(f.src_window, h(12, 2))
  t:add_le(f.dst_window, h(14, 2))
  t:add_le(f.bytes, h(16, 2))
  if h(1, 1):uint() >= 2 then t:add_le(f.middle, h(18, 2)) end
  t:add_le(f.epoch, h(20, 4))
  t:add_le(f.sequence, h(24, 8))
  t:add_le(f.created, h(32, 8))
  if payload then t:add(f.payload, payload) end
  if info.kind == DATA or info.kind == ACK or info.kind == OPERATION then
    dissect_message(h, tree, info)
  end
  if info.kind == CAU then dissect_cau(h, tree, info) end
  if info.kind == MANAGEMENT then dissect_management(h, tree, info) end
  if info.kind == WINDOW or info.kind == OPERATION then
    dissect_window(h, payload, tree, pinfo, root, info)
  end
end

local function dissect_names(tvb, tree, info, size)
  local at = FRAME_NUMBERS
  for _, name in ipairs(NAMES) do
    if at >= size then return end
    local length = tvb(at, 1):uint()
    if at + 1 + length > size then return end
    info[name] = length > 0 and tvb(at + 1, length):string() or ""
    if length > 0 then tree:add(f[name], tvb(at + 1, length)) end
    at = at + 1 + length
  end
end

local function dissect_frame(tvb, tree, info, size)
  local flags = tvb(4, 1):uint()
  tree:add(f.version, tvb(0, 1))
  tree:add(f.event, tvb(1, 1))
  local t = tree:add(f.flags, tvb(4, 1))
  -- Flags are there only where they are set, so that `percs.drop` is a filter.
  if bit.band(flags, 1) ~= 0 then t:add(f.drop, tvb(4, 1), true) end
  if bit.band(flags, 2) ~= 0 then t:add(f.delivered, tvb(4, 1), true) end
  if bit.band(flags, 4) ~= 0 then t:add(f.part, tvb(4, 1), true) end
  tree:add(f.hop, tvb(5, 1))
  if tvb(6, 1):uint() ~= 255 then tree:add(f.vc, tvb(6, 1)) end
  if tvb(7, 1):uint() ~= 255 then tree:add(f.input_vc, tvb(7, 1)) end
  tree:add_le(f.time, tvb(8, 8))
  tree:add_le(f["until"], tvb(16, 8))
  tree:add_le(f.arrived, tvb(24, 8))
  tree:add(f.flits_sent, tvb(32, 1))
  tree:add(f.grants, tvb(33, 1))
  for i, wait in ipairs(WAITS) do
    local at = 40 + 8 * (i - 1)
    if tvb(at, 8):le_uint64() ~= UInt64(0) then tree:add_le(f["wait__" .. wait], tvb(at, 8)) end
  end
  dissect_names(tvb, tree, info, size)
  if bit.band(flags, 1) == 0 then return end
  tree:add_proto_expert_info(dropped, "Dropped: " .. (info.reason or ""))
end

function percs.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "PERCS"
  local tree = root:add(percs, tvb())
  if tvb:len() < FRAME_NUMBERS then
    tree:add_proto_expert_info(too_short)
    return
  end
  local size = tvb(2, 2):le_uint()
  if tvb(0, 1):uint() ~= FRAME_VERSION then
    tree:add_proto_expert_info(unknown_version)
    return
  end
  if size > tvb:len() or size < FRAME_NUMBERS then
    tree:add_proto_expert_info(too_short)
    return
  end
  local info = {event = tvb(1, 1):uint(), what = "packet", sequence = "?"}
  local frame = tree:add(f.frame, tvb(0, size))
  frame:append_text(": " .. text(EVENTS, info.event))
  dissect_frame(tvb, frame, info, size)
  pinfo.cols.src = info.src or ""
  pinfo.cols.dst = info.dst or ""
  local left = tvb:len() - size
  if left == 0 then
    tree:add_proto_expert_info(not_kept)
  elseif left < PACKET_HEADER then
    tree:add_proto_expert_info(too_short)
  else
    local payload = left > PACKET_HEADER and tvb(size + PACKET_HEADER) or nil
    dissect_packet(tvb(size, PACKET_HEADER), payload, tree, pinfo, root, info)
  end
  local place = info.event == 1 and info.node .. ":" .. info.output or info.node
  local why = info.reason and info.reason ~= "" and ": " .. info.reason or ""
  pinfo.cols.protocol = "PERCS"
  pinfo.cols.info = string.format("%s %s %s at %s%s", info.what, info.sequence,
    text(EVENTS, info.event), place, why)
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, percs)
