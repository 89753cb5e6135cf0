// The `dds` runtime as a subject, for tests that need more of it than runtime.h says: --plugin FILE [--structs on]
// [--may-refuse WHAT]...
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "as_structs.h"
#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "subject.h"

namespace perflab::runtime::conformance {

class DdsSubject final : public Subject {
 public:
  [[nodiscard]] std::vector<ExecutorKind> executors() const override {
    return {ExecutorKind::kInline, ExecutorKind::kSingleThreaded, ExecutorKind::kEvents,
            ExecutorKind::kPolling, ExecutorKind::kMultiThreaded, ExecutorKind::kPriority, ExecutorKind::kLet};
  }

  bool set(const std::string& name, const std::string& value) override {
    if (name == "--plugin") file_ = value;
    if (name == "--structs") structs_ = value == "on";
    if (name == "--may-refuse") refused_.insert(value);
    return name == "--plugin" || name == "--structs" || name == "--may-refuse";
  }
  [[nodiscard]] std::string missing() const override { return file_.empty() ? "--plugin FILE" : ""; }

  [[nodiscard]] Abilities abilities() override {
    Abilities abilities;
    abilities.participants = 4;
    abilities.framings = {ServiceFraming::kRmwCyclonedds, ServiceFraming::kRmwFastrtps};
    if (file_.empty()) return abilities;
    abilities.loans = capabilities().loans;
    abilities.reliable = !refused_.contains("reliability");
    abilities.durable = !refused_.contains("durability");
    abilities.known_by_stamp = capabilities().source_timestamps;
    if (!capabilities().related_samples) abilities.framings.pop_back();
    return abilities;
  }

  // The file of the plug-in.
  [[nodiscard]] const std::string& file() const { return file_; }
  middleware::Plugin& plugin() {
    if (!plugin_) plugin_.emplace(middleware::Plugin::load(file_));
    return *plugin_;
  }
  [[nodiscard]] perflab_capabilities capabilities() { return plugin().capabilities(); }
  // Tracepoints that runtimes opened from now on call; null: none.
  const perflab_ros2_tracepoints* trace = nullptr;

  std::unique_ptr<Runtime> open(const Asked& asked, std::uint32_t domain, const measure::Clock& clock,
                                EventSink& sink) override {
    middleware::ParticipantSettings participant;
    participant.domain = domain;
    participant.participants_expected = 4;
    auto made = std::make_unique<DdsRuntime>(plugin(), participant,
                                             DdsSettings{.intra_process = asked.intra_process,
                                                         .service_framing = asked.framing,
                                                         .trace = trace,
                                                         .participants = asked.participants},
                                             clock, sink);
    if (structs_) return std::make_unique<AsStructs>(std::move(made));
    return made;
  }

 private:
  std::string file_;
  bool structs_ = false;
  std::set<std::string> refused_;
  std::optional<middleware::Plugin> plugin_;
};

// The one that subject() gives.
DdsSubject& dds();

}  // namespace perflab::runtime::conformance
