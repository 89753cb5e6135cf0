// The `virtual` runtime.
#include "runtime/virtual/virtual_runtime.h"
#include "subject.h"

namespace perflab::runtime::conformance {
namespace {

class VirtualSubject final : public Subject {
 public:
  [[nodiscard]] std::vector<ExecutorKind> executors() const override {
    return {ExecutorKind::kInline, ExecutorKind::kSingleThreaded, ExecutorKind::kEvents,
            ExecutorKind::kMultiThreaded, ExecutorKind::kPriority, ExecutorKind::kLet};
  }
  bool set(const std::string&, const std::string&) override { return false; }

  [[nodiscard]] Abilities abilities() override {
    Abilities abilities;
    abilities.virtual_time = true;
    abilities.intra_process = false;
    abilities.tells_events = false;
    abilities.schedules_threads = false;
    abilities.framings = {ServiceFraming::kRmwCyclonedds};
    return abilities;
  }

  std::unique_ptr<Runtime> open(const Asked&, std::uint32_t, const measure::Clock&, EventSink&) override {
    return std::make_unique<VirtualRuntime>(VirtualRuntime::Options{{"disturb.delay", "1ms"}}, 1);
  }
};

}  // namespace

Subject& subject() {
  static VirtualSubject instance;
  return instance;
}

}  // namespace perflab::runtime::conformance
