#include "manipulation/controllers/manager_node.h"

#include <algorithm>
#include <utility>

#include "manipulation/controllers/messages.h"

namespace perflab::manipulation {
namespace {

namespace srv = messages::controller_manager_msgs::srv;
namespace pal = messages::pal_statistics_msgs::msg;

const std::string kNode = "/controller_manager";
// Interval for checking whether the loop has made the requested change.
constexpr Nanoseconds kPolling = 1'000'000;

// lifecycle_msgs/State.
struct Lifecycle {
  std::uint8_t id;
  const char* label;
};
constexpr Lifecycle kInactive{2, "inactive"}, kActive{3, "active"};

std::vector<std::string> prefixed(const std::string& prefix, const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(prefix + name);
  return all;
}

std::vector<std::string> interfaces_of(const HardwareDescription& hardware) {
  std::vector<std::string> all = prefixed("state_interface.", hardware.state_interfaces);
  const std::vector<std::string> commands = prefixed("command_interface.", hardware.command_interfaces);
  all.insert(all.end(), commands.begin(), commands.end());
  return all;
}

template <typename Texts>
std::vector<std::string> texts_of(const Texts& texts) {
  std::vector<std::string> all;
  for (const auto& each : texts) all.push_back(each.string());
  return all;
}

}  // namespace

StatisticsTopics::StatisticsTopics(program::Context& context, const std::string& topic, const std::vector<std::string>& names)
    : names_(context.publisher<pal::StatisticsNames>(kNode, topic + "/names")),
      values_(context.publisher<pal::StatisticsValues>(kNode, topic + "/values")),
      full_(context.publisher<pal::Statistics>(kNode, topic + "/full")) {
  names_.message().names = names;
  names_.message().names_version = values_.message().names_version = 1;
  auto& statistics = full_.message().statistics;
  statistics.resize(names.size());
  for (std::size_t each = 0; each < names.size(); ++each) statistics[each].name = names[each];
}

void StatisticsTopics::start() { names_.publish(); }

bool StatisticsTopics::look() {
  values_heard_ = values_.readers() > 0;
  full_heard_ = full_.readers() > 0;
  return values_heard_ || full_heard_;
}

void StatisticsTopics::publish(Nanoseconds time_ns, Nanoseconds due_ns, std::span<const double> values) {
  if (values_heard_) {
    write_stamp(time_ns, values_.message().header.stamp);
    write_numbers(values, values_.message().values);
    values_.publish(due_ns);
  }
  if (full_heard_) {
    write_stamp(time_ns, full_.message().header.stamp);
    for (std::size_t each = 0; each < values.size(); ++each) full_.message().statistics[each].value = values[each];
    full_.publish(due_ns);
  }
}

ManagerNode::ManagerNode(program::Context& context, ControllerSet& controllers, HardwareDescription hardware,
                         const std::vector<std::string>& statistics, std::uint16_t update_rate,
                         std::function<void(std::size_t)> deactivated)
    : controllers_(controllers),
      hardware_(std::move(hardware)),
      update_rate_(update_rate),
      deactivated_(std::move(deactivated)),
      activity_(context.publisher<messages::controller_manager_msgs::msg::ControllerManagerActivity>(kNode, kNode + "/activity")),
      statistics_(context, kNode + "/statistics", statistics),
      introspection_(context, kNode + "/introspection_data", interfaces_of(hardware_)),
      cycle_{.statistics = std::vector<double>(statistics.size()),
             .interfaces = std::vector<double>(hardware_.state_interfaces.size() + hardware_.command_interfaces.size())},
      publisher_(context, "manager", cycle_, [this](const Cycle& cycle) { publish(cycle); }) {
  serve(context);
}

void ManagerNode::serve(program::Context& context) {
  context.on_request<srv::ListControllers>(
      kNode, kNode + "/list_controllers", [this](const srv::ListControllers::Request&, program::Request<srv::ListControllers> open) {
        srv::ListControllers::Response response;
        for (std::size_t each = 0; each < controllers_.all().size(); ++each) {
          const ControllerDescription& controller = controllers_.all()[each];
          auto& to = response.controller.emplace_back();
          to.name = controller.name;
          to.state = (controllers_.active(each) ? kActive : kInactive).label;
          to.type = controller.type;
          to.update_rate = update_rate_;
          to.required_command_interfaces = controller.command_interfaces;
          to.required_state_interfaces = controller.state_interfaces;
          if (controllers_.active(each)) to.claimed_interfaces = controller.command_interfaces;
        }
        open.reply(response);
      });
  context.on_request<srv::ListControllerTypes>(
      kNode, kNode + "/list_controller_types",
      [this](const srv::ListControllerTypes::Request&, program::Request<srv::ListControllerTypes> open) {
        srv::ListControllerTypes::Response response;
        for (const ControllerDescription& controller : controllers_.all()) {
          response.types.push_back(controller.type);
          response.base_classes.push_back("controller_interface::ControllerInterface");
        }
        open.reply(response);
      });
  context.on_request<srv::ListHardwareComponents>(
      kNode, kNode + "/list_hardware_components",
      [this](const srv::ListHardwareComponents::Request&, program::Request<srv::ListHardwareComponents> open) {
        srv::ListHardwareComponents::Response response;
        auto& component = response.component.emplace_back();
        component.name = hardware_.name;
        component.type = "system";
        component.rw_rate = update_rate_;
        component.plugin_name = hardware_.plugin;
        component.state.id = kActive.id;
        component.state.label = kActive.label;
        write_interfaces(component.command_interfaces, component.state_interfaces);
        open.reply(response);
      });
  context.on_request<srv::ListHardwareInterfaces>(
      kNode, kNode + "/list_hardware_interfaces",
      [this](const srv::ListHardwareInterfaces::Request&, program::Request<srv::ListHardwareInterfaces> open) {
        srv::ListHardwareInterfaces::Response response;
        write_interfaces(response.command_interfaces, response.state_interfaces);
        open.reply(response);
      });
  context.on_request<SwitchController>(
      kNode, kNode + "/switch_controller", [this](const SwitchController::Request& request, program::Request<SwitchController> open) {
        SwitchController::Response response;
        change(request, response);
        open.reply(response);
      });
}

// Waits for the loop, like ros2_control; its other services wait meanwhile.
void ManagerNode::change(const SwitchController::Request& request, SwitchController::Response& response) {
  const Strictness strictness =
      request.strictness == SwitchController::Request::STRICT ? Strictness::kStrict : Strictness::kBestEffort;
  const Switch change =
      controllers_.plan(texts_of(request.activate_controllers), texts_of(request.deactivate_controllers), strictness);
  response.ok = change.ok;
  response.message = change.message;
  if (!change.ok || (change.activate.empty() && change.deactivate.empty())) return;
  controllers_.ask(change);
  const Nanoseconds timeout_ns = read_stamp(request.timeout);
  const program::Clock clock;
  for (const Nanoseconds from_ns = clock.now(); !controllers_.done(); program::Clock::sleep_until(clock.now() + kPolling)) {
    if (!stopping_.load() && (timeout_ns == 0 || clock.now() < from_ns + timeout_ns)) continue;
    response.ok = false;
    response.message = "Switch controller timed out: the control loop is not running";
    return;
  }
  for (const std::size_t each : change.deactivate) deactivated_(each);
  publish_activity();
}

bool ManagerNode::claimed(const std::string& interface) const {
  for (std::size_t each = 0; each < controllers_.all().size(); ++each) {
    const std::vector<std::string>& commands = controllers_.all()[each].command_interfaces;
    if (controllers_.active(each) && std::find(commands.begin(), commands.end(), interface) != commands.end()) return true;
  }
  return false;
}

template <typename Interfaces>
void ManagerNode::write_interfaces(Interfaces& commands, Interfaces& states) const {
  const auto write = [](const std::string& name, bool is_claimed, Interfaces& to) {
    auto& interface = to.emplace_back();
    interface.name = name;
    interface.data_type = "double";
    interface.is_available = true;
    interface.is_claimed = is_claimed;
  };
  for (const std::string& name : hardware_.command_interfaces) write(name, claimed(name), commands);
  for (const std::string& name : hardware_.state_interfaces) write(name, false, states);
}

void ManagerNode::offer(Nanoseconds time_ns, Nanoseconds due_ns, std::span<const double> statistics,
                        std::span<const double> states, std::span<const double> commands) noexcept {
  if (!heard_.load(std::memory_order_relaxed) && unheard_++ % kBetweenLooks != 0) return;  // its thread sleeps
  cycle_.time_ns = time_ns;
  cycle_.due_ns = due_ns;
  std::copy(statistics.begin(), statistics.end(), cycle_.statistics.begin());
  std::copy(commands.begin(), commands.end(), std::copy(states.begin(), states.end(), cycle_.interfaces.begin()));
  publisher_.offer(cycle_);
}

void ManagerNode::publish(const Cycle& cycle) {
  if (!heard_.load(std::memory_order_relaxed) || ++heard_for_ % kBetweenLooks == 0) {
    const bool statistics = statistics_.look(), introspection = introspection_.look();
    heard_.store(statistics || introspection, std::memory_order_relaxed);
  }
  statistics_.publish(cycle.time_ns, cycle.due_ns, cycle.statistics);
  introspection_.publish(cycle.time_ns, cycle.due_ns, cycle.interfaces);
}

void ManagerNode::publish_activity() {
  auto& message = activity_.message();
  const auto write = [](const std::string& name, const Lifecycle& state, auto& to) {
    to.name = name;
    to.state.id = state.id;
    to.state.label = state.label;
  };
  message.controllers.resize(controllers_.all().size());
  for (std::size_t each = 0; each < controllers_.all().size(); ++each) {
    write(controllers_.all()[each].name, controllers_.active(each) ? kActive : kInactive, message.controllers[each]);
  }
  message.hardware_components.resize(1);
  write(hardware_.name, kActive, message.hardware_components[0]);
  activity_.publish();
}

void ManagerNode::start() {
  statistics_.start();
  introspection_.start();
  publish_activity();
}

void ManagerNode::stop() noexcept {
  stopping_.store(true);
  publisher_.stop();
}

}  // namespace perflab::manipulation
