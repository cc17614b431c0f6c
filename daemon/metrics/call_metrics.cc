#include "daemon/metrics/call_metrics.h"

#include "daemon/metrics/metric_list.h"
#include "daemon/stream/call_meter.h"

namespace percs {
namespace {

double Number(const std::atomic<std::uint64_t>& value) {
  return static_cast<double>(value.load(std::memory_order_relaxed));
}

}  // namespace

void AddCallMetrics(MetricFamilies* families) {
  for (const MethodCalls* calls : AllCalls()) {
    if (Number(calls->started) == 0) continue;
    const MetricFamilies::Labels labels = {
        {"grpc_type", CallTypeName(calls->type.load(std::memory_order_relaxed))},
        {"grpc_service", calls->service},
        {"grpc_method", calls->method}};
    families->Add(metric::kGrpcStarted, labels, Number(calls->started));
    for (std::size_t code = 0; code < kGrpcCodes; ++code) {
      if (code != 0 && Number(calls->handled[code]) == 0) continue;
      MetricFamilies::Labels with_code = labels;
      with_code.emplace_back("grpc_code", kGrpcCodeNames[code]);
      families->Add(metric::kGrpcHandled, with_code, Number(calls->handled[code]));
    }
    families->Add(metric::kGrpcReceived, labels, Number(calls->received));
    families->Add(metric::kGrpcSent, labels, Number(calls->sent));
    std::vector<std::uint64_t> counts;
    for (const auto& bucket : calls->took) counts.push_back(bucket.load(std::memory_order_relaxed));
    constexpr double kNanosecond = 1e-9;
    families->AddBuckets(metric::kGrpcSeconds, labels, kCallSecondsEdges, counts,
                         Number(calls->nanoseconds) * kNanosecond);
  }
}

}  // namespace percs
