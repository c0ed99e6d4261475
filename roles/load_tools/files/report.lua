-- Prints, after wrk's own text, one line "LAB_WRK {json}" with exact integers: wrk's text rounds
-- its counts' units and its latencies, and gives only four percentiles.
-- latency(i) gives the i-th distinct latency in µs and how many answers had it (wrk 4.1).
-- LAB_BURST_EVERY_MS lets all connections send together, when the clock is at a multiple of it.
-- LAB_METHOD and LAB_BODY are of requests that are no plain GET.
wrk.method = os.getenv("LAB_METHOD") or wrk.method
wrk.body = os.getenv("LAB_BODY") or wrk.body
local every_ms = tonumber(os.getenv("LAB_BURST_EVERY_MS"))
if every_ms then
   local ffi = require("ffi")
   ffi.cdef([[
      typedef struct { long s, ns; } lab_time;
      int clock_gettime(int clock, lab_time *time);
   ]])
   local now = ffi.new("lab_time")
   -- The milliseconds that wrk waits before a request.
   function delay()
      ffi.C.clock_gettime(0, now)
      return every_ms - (tonumber(now.s) * 1000 + tonumber(now.ns) / 1e6) % every_ms
   end
end

function done(summary, latency, requests)
   local e, n = summary.errors, "%.0f"
   local function field(name, value) return string.format('"%s":' .. n, name, value) end
   local errors = {}
   for _, name in ipairs({"connect", "read", "write", "status", "timeout"}) do
      errors[#errors + 1] = field(name, e[name])
   end
   local pairs_ = {}
   for i = 1, #latency do
      local value, count = latency(i)
      pairs_[i] = string.format("[" .. n .. "," .. n .. "]", value, count)
   end
   io.write("LAB_WRK {", field("duration_us", summary.duration), ",",
            field("requests", summary.requests), ",", field("bytes", summary.bytes),
            ',"errors":{', table.concat(errors, ","), '},"latency_us":[',
            table.concat(pairs_, ","), "]}\n")
end
