// The `rclcpp` runtime, from its library: --library FILE --rmw NAME [--structs off]
#include "as_structs.h"
#include "runtime/plugin.h"
#include "subject.h"

namespace perflab::runtime::conformance {
namespace {

class RclcppSubject final : public Subject {
 public:
  [[nodiscard]] std::vector<ExecutorKind> executors() const override {
    return {ExecutorKind::kInline, ExecutorKind::kSingleThreaded, ExecutorKind::kStaticSingleThreaded,
            ExecutorKind::kEvents, ExecutorKind::kMultiThreaded, ExecutorKind::kPriority, ExecutorKind::kLet};
  }
  // It is gone from Rolling, and Humble has no EventsExecutor and tells nobody what a wait found.
  [[nodiscard]] bool may_lack(ExecutorKind kind) const override {
    return kind == ExecutorKind::kStaticSingleThreaded || kind == ExecutorKind::kEvents ||
           kind == ExecutorKind::kPriority || kind == ExecutorKind::kLet;
  }

  bool set(const std::string& name, const std::string& value) override {
    if (name == "--library") file_ = value;
    if (name == "--rmw") rmw_ = value;
    if (name == "--structs") structs_ = value == "on";
    return name == "--library" || name == "--rmw" || name == "--structs";
  }
  [[nodiscard]] std::string missing() const override {
    return file_.empty() ? "--library FILE" : rmw_.empty() ? "--rmw NAME" : "";
  }

  [[nodiscard]] Abilities abilities() override {
    Abilities abilities;
    abilities.makes_up_for_ticks = false;  // rclcpp's timers always skip
    abilities.tells_writers = false;       // not where a message did not pass the middleware
    abilities.tells_arrivals = false;
    abilities.checks_types = true;
    abilities.types_of_users = false;  // of which there is no package in ROS 2
    abilities.known_by_stamp = false;
    abilities.intra_process = structs_;
    abilities.loans = structs_ && rmw_ == "rmw_fastrtps_cpp";
    abilities.loans_by_type = true;  // plain as the RMW sees it, which the padding of a struct decides
    abilities.participants = 4;
    abilities.framings = {ServiceFraming::kRmwCyclonedds, ServiceFraming::kRmwFastrtps};
    if (rmw_.empty()) return abilities;
    std::erase_if(abilities.framings, [this](ServiceFraming framing) {
      return (framing == ServiceFraming::kRmwCyclonedds) != (rmw_ == "rmw_cyclonedds_cpp");
    });
    return abilities;
  }

  std::unique_ptr<Runtime> open(const Asked& asked, std::uint32_t domain, const measure::Clock& clock,
                                EventSink& sink) override {
    if (!plugin_) plugin_.emplace(Plugin::load(file_));
    PluginSettings settings;
    settings.middleware = "rclcpp/" + rmw_;
    settings.domain = domain;
    settings.participants_expected = 4;
    settings.participants = asked.participants;
    settings.intra_process = asked.intra_process;
    settings.structs = structs_;
    settings.service_framing = asked.framing;
    std::unique_ptr<Runtime> made = plugin_->open(settings, clock, sink);
    if (structs_) return std::make_unique<AsStructs>(std::move(made));
    return made;
  }

 private:
  std::string file_;
  std::string rmw_;
  bool structs_ = true;
  std::optional<Plugin> plugin_;
};

}  // namespace

Subject& subject() {
  static RclcppSubject instance;
  return instance;
}

}  // namespace perflab::runtime::conformance
