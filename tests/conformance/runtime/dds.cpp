// The `dds` runtime: --plugin FILE
#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "subject.h"

namespace perflab::runtime::conformance {
namespace {

class DdsSubject final : public Subject {
 public:
  [[nodiscard]] std::vector<ExecutorKind> executors() const override {
    return {ExecutorKind::kInline, ExecutorKind::kSingleThreaded, ExecutorKind::kEvents,
            ExecutorKind::kMultiThreaded};
  }

  bool set(const std::string& name, const std::string& value) override {
    if (name != "--plugin") return false;
    file_ = value;
    return true;
  }
  [[nodiscard]] std::string missing() const override { return file_.empty() ? "--plugin FILE" : ""; }

  [[nodiscard]] Abilities abilities() override {
    Abilities abilities;
    abilities.participants = 4;
    abilities.framings = {ServiceFraming::kRmwCyclonedds, ServiceFraming::kRmwFastrtps};
    if (file_.empty()) return abilities;
    const perflab_capabilities capabilities = plugin().capabilities();
    abilities.loans = capabilities.loans;
    if (!capabilities.related_samples) abilities.framings.pop_back();
    return abilities;
  }

  std::unique_ptr<Runtime> open(const Asked& asked, std::uint32_t domain, const measure::Clock& clock,
                                EventSink& sink) override {
    middleware::ParticipantSettings participant;
    participant.domain = domain;
    participant.participants_expected = 4;
    return std::make_unique<DdsRuntime>(plugin(), participant,
                                        DdsSettings{.intra_process = asked.intra_process,
                                                    .service_framing = asked.framing,
                                                    .trace = nullptr,
                                                    .participants = asked.participants},
                                        clock, sink);
  }

 private:
  middleware::Plugin& plugin() {
    if (!plugin_) plugin_.emplace(middleware::Plugin::load(file_));
    return *plugin_;
  }

  std::string file_;
  std::optional<middleware::Plugin> plugin_;
};

}  // namespace

Subject& subject() {
  static DdsSubject instance;
  return instance;
}

}  // namespace perflab::runtime::conformance
