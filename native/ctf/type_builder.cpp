#include "ctf/type_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>
#include <utility>

namespace perflab::ctf {
namespace {

using tsdl::Expression;
using tsdl::FieldNode;
using tsdl::in_quotes;
using tsdl::TypeNode;

// No sensible trace comes close to these limits; they keep a short text from requesting more memory than
// there is.
constexpr std::uint64_t kMostFields = 100'000;       // of one scope, those of types inside types included
constexpr std::uint64_t kMostElements = 1ULL << 26;  // of an array, those of arrays inside it included

// Removes the single underscore that tracers put before names.
std::string_view without_underscore(std::string_view name) {
  return name.size() > 1 && name.front() == '_' ? name.substr(1) : name;
}

// Whether two names are equal except for one leading underscore.
bool is_alike(std::string_view a, std::string_view b) {
  return without_underscore(a) == b || a == without_underscore(b);
}

// Builds the structure of one scope.
class ScopeBuilder : tsdl::Reporter {
 public:
  ScopeBuilder(Types& types, Scope scope) : Reporter(types.report), types_(types), scope_(scope) {}

  Built build(const tsdl::Attribute& attribute) {
    if (attribute.type == nullptr) {
      fail(attribute.where, "'{}' must be a type; write {} := struct {{ ... }}", attribute.name,
           attribute.name);
    }
    const TypeNode* node = resolved(attribute.type);
    if (node->kind != TypeNode::Kind::structure) {
      fail(attribute.where, "'{}' is {}; it must be a structure", attribute.name, tsdl::name_of(node->kind));
    }
    return build(node, 0);
  }

 private:
  // While a type is built, the types around it are on a stack, outermost first.
  struct Frame {
    const TypeNode* node = nullptr;
    const std::vector<Built>* built = nullptr;  // the fields of a structure that are built so far
    std::uint32_t current = 0;                  // index of the field or option that is being built
  };

  // The declaration of a name that is declared further down at the top level.
  const TypeNode* resolved(const TypeNode* node) const {
    if (node->kind != TypeNode::Kind::later) return node;
    const auto found = types_.document.types.find(node->name);
    if (found == types_.document.types.end()) {
      fail(node->where, "the type {} is unknown; {}", in_quotes(node->name), node->advice);
    }
    return found->second;
  }

  // In these scopes, time stamps may use the only clock implicitly: their types are not shared with other
  // scopes.
  [[nodiscard]] bool has_implicit_clock() const {
    return types_.metadata.clocks.size() == 1 &&
           (scope_ == Scope::event_header || scope_ == Scope::packet_context);
  }

  // Whether a type depends on its place although it refers to no field.
  [[nodiscard]] bool depends_on_place(const TypeNode& node) const {
    const bool is_leaf = node.element == nullptr && node.fields == nullptr;
    const bool is_label = node.kind == TypeNode::Kind::enumeration;
    return has_implicit_clock() && (!(is_leaf || is_label) || is_time_stamp());
  }

  Built build(const TypeNode* node, unsigned level) {
    node = resolved(node);
    const bool is_shared = !depends_on_place(*node);
    if (const auto shared = types_.shared.find(node); is_shared && shared != types_.shared.end()) {
      check_levels(node, level + shared->second.levels);
      count_fields(node, shared->second.fields);
      return shared->second;
    }
    check_levels(node, level + 1);
    Built built = build_kind(node, level);
    built.node = node;
    if (is_shared && !built.refers) types_.shared.emplace(node, built);
    return built;
  }

  void check_levels(const TypeNode* node, unsigned levels) const {
    if (levels > tsdl::kDeepest) {
      fail(node->where, "types are nested too deeply; {} levels are the most", tsdl::kDeepest);
    }
  }

  void count_fields(const TypeNode* node, std::uint64_t fields) {
    scope_fields_ += fields;
    if (scope_fields_ > kMostFields) {
      fail(node->where,
           "with the structures inside it, this has too many fields and choices; {} are the most",
           kMostFields);
    }
  }

  static Built leaf(FieldType type) {
    Built built;
    built.type = std::make_shared<const FieldType>(std::move(type));
    built.levels = 1;
    return built;
  }

  Built build_kind(const TypeNode* node, unsigned level) {
    switch (node->kind) {
      case TypeNode::Kind::integer:
        return leaf({build_integer(*node)});
      case TypeNode::Kind::floating:
        return leaf({build_float(*node)});
      case TypeNode::Kind::text:
        return leaf({Text{}});
      case TypeNode::Kind::enumeration:
        return leaf({build_enumeration(*node)});
      case TypeNode::Kind::array:
        return build_array(*node, level);
      case TypeNode::Kind::sequence:
        return build_sequence(*node, level);
      case TypeNode::Kind::structure:
        return build_structure(*node, level);
      case TypeNode::Kind::variant:
        return build_variant(*node, level);
      case TypeNode::Kind::later:
        break;
    }
    fail(node->where, "a type that refers to itself");
  }

  ByteOrder order_of(const TypeNode& node) const { return node.order.value_or(types_.metadata.order); }

  Integer build_integer(const TypeNode& node) const {
    Integer integer = node.integer;
    integer.order = order_of(node);
    if (node.map) {
      const std::string& clock = node.map->path[1];
      for (std::size_t i = 0; i < types_.metadata.clocks.size(); ++i) {
        if (types_.metadata.clocks[i].name == clock) integer.clock = static_cast<std::uint32_t>(i);
      }
      if (!integer.clock) {
        fail(node.map->where, "this integer is of the clock {}, which is not declared", in_quotes(clock));
      }
    } else if (has_implicit_clock() && is_time_stamp()) {
      integer.clock = 0;
    }
    return integer;
  }

  // Whether the field being built is where tracers put the time stamp.
  [[nodiscard]] bool is_time_stamp() const {
    if (frames_.empty() || frames_.back().node->kind != TypeNode::Kind::structure) return false;
    const Frame& frame = frames_.back();
    const std::string& field = (*frame.node->fields)[frame.current].name;
    if (scope_ == Scope::event_header) return field == "timestamp";
    return field == "timestamp_begin" || field == "timestamp_end";
  }

  Float build_float(const TypeNode& node) const {
    Float type = node.floating;
    type.order = order_of(node);
    return type;
  }

  Enumeration build_enumeration(const TypeNode& node) {
    const TypeNode* container = resolved(node.element);
    if (container->kind == TypeNode::Kind::enumeration) container = resolved(container->element);
    if (container->kind != TypeNode::Kind::integer) {
      fail(node.where, "the type of this enumeration is {}; it must be an integer",
           tsdl::name_of(container->kind));
    }
    Enumeration result;
    result.integer = build_integer(*container);
    const std::uint32_t size = result.integer.size;
    const bool is_signed = result.integer.is_signed;
    const auto fits = [&](std::uint64_t value, bool negative) {
      if (negative)
        return is_signed && (size == 64 || (value >> (size - 1)) == (~std::uint64_t{0} >> (size - 1)));
      const std::uint32_t bits = is_signed ? size - 1 : size;
      return bits == 64 || (value >> bits) == 0;
    };
    const bool first_time = types_.warned.insert(&node).second;
    for (const auto& label : node.labels) {
      if (first_time &&
          (!fits(label.lowest, label.lowest_negative) || !fits(label.highest, label.highest_negative))) {
        warn(label.where, "the label {} stands for values that do not fit into {} bits {}",
             in_quotes(label.label), size, is_signed ? "with a sign" : "without a sign");
      }
      // Values outside of the type's range are cut off, so that no other value gets this label.
      std::uint64_t lowest = label.lowest;
      std::uint64_t highest = label.highest;
      constexpr std::uint64_t kLargestSigned = std::numeric_limits<std::int64_t>::max();
      if (is_signed && !label.lowest_negative && lowest > kLargestSigned) continue;
      if (is_signed && !label.highest_negative) highest = std::min(highest, kLargestSigned);
      if (!is_signed && label.highest_negative) continue;
      if (!is_signed && label.lowest_negative) lowest = 0;
      result.mappings.push_back({label.label, lowest, highest});
    }
    return result;
  }

  Built build_element(const TypeNode& node, unsigned level) {
    Frame frame;
    frame.node = &node;
    frames_.push_back(frame);
    Built element = build(node.element, level + 1);
    frames_.pop_back();
    return element;
  }

  Built build_array(const TypeNode& node, unsigned level) {
    const Built element = build_element(node, level);
    Built built;
    built.elements =
        element.elements == 0 ? node.length : element.elements * std::min(node.length, kMostElements + 1);
    if (built.elements > kMostElements) {
      fail(node.where, "this array of {} is absurdly large; {} elements in all are the most", node.length,
           kMostElements);
    }
    built.type = std::make_shared<const FieldType>(FieldType{Array{element.type, node.length}});
    inherit(built, element);
    return built;
  }

  static void inherit(Built& built, const Built& inner) {
    built.fields += inner.fields;
    built.levels = std::max(built.levels, inner.levels + 1);
    built.refers = built.refers || inner.refers;
  }

  Built build_sequence(const TypeNode& node, unsigned level) {
    Built target;
    Sequence sequence;
    sequence.length = find_field(*node.path, "the length of this sequence", target);
    const Integer* integer = integer_of(*target.type);
    if (integer == nullptr) {
      fail(node.path->where, "the length of this sequence, {}, is {}; it must be an unsigned integer",
           in_quotes(tsdl::joined(node.path->path)), tsdl::name_of(target.node->kind));
    }
    if (integer->is_signed) {
      fail(node.path->where, "the length of this sequence, {}, has a sign; it must be an unsigned integer",
           in_quotes(tsdl::joined(node.path->path)));
    }
    const Built element = build_element(node, level);
    sequence.element = element.type;
    Built built;
    built.type = std::make_shared<const FieldType>(FieldType{std::move(sequence)});
    inherit(built, element);
    built.refers = true;
    return built;
  }

  // Names of fields without underscore, unless two names would then be equal.
  static std::vector<std::string> shown_names(const std::vector<FieldNode>& fields) {
    std::vector<std::size_t> shortest_first(fields.size());
    std::iota(shortest_first.begin(), shortest_first.end(), std::size_t{0});
    std::stable_sort(shortest_first.begin(), shortest_first.end(), [&](std::size_t a, std::size_t b) {
      return fields[a].name.size() < fields[b].name.size();
    });
    std::unordered_set<std::string_view> taken;
    std::vector<std::string> result(fields.size());
    for (const auto i : shortest_first) {
      const std::string_view written = fields[i].name;
      auto shown = without_underscore(written);
      if (!taken.insert(shown).second) {
        shown = written;
        taken.insert(shown);
      }
      result[i] = shown;
    }
    return result;
  }

  Built build_structure(const TypeNode& node, unsigned level) {
    Structure structure;
    structure.minimum_alignment = node.alignment;
    Built built;
    built.elements = 0;
    std::vector<Built> members;
    const auto names = shown_names(*node.fields);
    count_fields(&node, names.size());
    built.fields = names.size();
    const std::size_t depth = frames_.size();
    frames_.push_back({&node, &members, 0});
    for (std::size_t i = 0; i < names.size(); ++i) {
      frames_[depth].current = static_cast<std::uint32_t>(i);
      Built member = build((*node.fields)[i].type, level + 1);
      built.elements = std::min(built.elements + member.elements, kMostElements + 1);
      inherit(built, member);
      structure.fields.push_back({names[i], member.type});
      members.push_back(std::move(member));
    }
    frames_.pop_back();
    built.levels = std::max(built.levels, 1U);
    built.type = std::make_shared<const FieldType>(FieldType{std::move(structure)});
    return built;
  }

  const TypeNode& options_of(const TypeNode& node) const {
    if (node.fields != nullptr) return node;
    const auto found = types_.document.types.find(node.name);
    if (found == types_.document.types.end()) {
      fail(node.where, "the type {} is unknown; declare it with variant NAME {{ ... }}",
           in_quotes(node.name));
    }
    return *found->second;
  }

  Built build_variant(const TypeNode& node, unsigned level) {
    if (!node.path)
      fail(node.where, "this variant has no selector; write variant <NAME OF AN ENUMERATION> {{ ... }}");
    const TypeNode& written = options_of(node);
    Built target;
    Variant variant;
    variant.selector = find_field(*node.path, "the selector of this variant", target);
    const auto* selector = std::get_if<Enumeration>(&target.type->kind);
    if (selector == nullptr) {
      fail(node.path->where, "the selector of this variant, {}, is {}; it must be an enumeration",
           in_quotes(tsdl::joined(node.path->path)), tsdl::name_of(target.node->kind));
    }
    variant.selector_is_signed = selector->integer.is_signed;
    Built built;
    built.refers = true;
    built.elements = 0;
    const auto names = shown_names(*written.fields);
    built.fields = names.size() + selector->mappings.size();
    count_fields(&node, built.fields);
    if (names.empty())
      fail(node.where, "this variant has no options; give it one for each label of its selector");
    const std::size_t depth = frames_.size();
    TypeNode frame_node;  // names of the options if they are declared elsewhere
    frame_node.kind = TypeNode::Kind::variant;
    frame_node.fields = written.fields;
    frames_.push_back({&frame_node, nullptr, 0});
    for (std::size_t i = 0; i < names.size(); ++i) {
      frames_[depth].current = static_cast<std::uint32_t>(i);
      Built option = build((*written.fields)[i].type, level + 1);
      built.elements = std::max(built.elements, option.elements);
      inherit(built, option);
      variant.options.push_back({names[i], option.type});
    }
    frames_.pop_back();
    choose(variant, *written.fields, *selector);
    built.type = std::make_shared<const FieldType>(FieldType{std::move(variant)});
    return built;
  }

  // Connects a variant's options to the labels of its selector: first equal names, then names that differ by
  // one leading underscore.
  void choose(Variant& variant, const std::vector<FieldNode>& options, const Enumeration& selector) const {
    std::unordered_map<std::string, std::uint32_t> as_written;
    for (std::size_t i = 0; i < options.size(); ++i) {
      as_written.emplace(options[i].name, static_cast<std::uint32_t>(i));
    }
    std::vector<bool> is_chosen(options.size());
    for (const auto& mapping : selector.mappings) {
      if (const auto found = as_written.find(mapping.label); found != as_written.end()) {
        is_chosen[found->second] = true;
      }
    }
    std::unordered_map<std::string, std::uint32_t> alike;  // options without an equal label
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (is_chosen[i]) continue;
      alike.emplace(without_underscore(options[i].name), static_cast<std::uint32_t>(i));
      alike.emplace("_" + options[i].name, static_cast<std::uint32_t>(i));
    }
    for (const auto& mapping : selector.mappings) {
      auto option = as_written.find(mapping.label);
      if (option == as_written.end()) {
        option = alike.find(mapping.label);
        if (option == alike.end()) continue;
      }
      is_chosen[option->second] = true;
      variant.choices.push_back({mapping.lowest, mapping.highest, option->second});
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (!is_chosen[i]) {
        fail(options[i].where, "no label of the variant's selector is {}; an option has the name of a label",
             in_quotes(options[i].name));
      }
    }
  }

  // Fields for lengths and selectors.

  // The field of a structure that `name` means, if it is among the first `count`.
  std::optional<std::uint32_t> field_index(const TypeNode& structure, std::size_t count,
                                           const std::string& name) const {
    auto& index = types_.indices[structure.fields.get()];
    if (index.empty()) {
      for (std::size_t i = 0; i < structure.fields->size(); ++i) {
        index.emplace((*structure.fields)[i].name, static_cast<std::uint32_t>(i));
      }
    }
    for (const auto& written : {name, "_" + name, std::string(without_underscore(name))}) {
      const auto found = index.find(written);
      if (found != index.end() && found->second < count) return found->second;
    }
    return std::nullopt;
  }

  // Follows path[next...] into a structure that is built.
  std::optional<Built> follow(const TypeNode* node, const FieldTypePtr& type,
                              const std::vector<std::string>& path, std::size_t next, FieldPath& way) const {
    const TypeNode* at = node;
    FieldTypePtr here = type;
    for (; next < path.size(); ++next) {
      if (at->kind != TypeNode::Kind::structure) return std::nullopt;
      const auto index = field_index(*at, at->fields->size(), path[next]);
      if (!index) return std::nullopt;
      way.indices.push_back(*index);
      here = std::get<Structure>(here->kind).fields[*index].type;
      at = resolved((*at->fields)[*index].type);
    }
    Built built;
    built.type = here;
    built.node = at;
    return built;
  }

  // From the structure at frames_[depth] on.
  std::optional<Built> follow_open(std::size_t depth, const std::vector<std::string>& path, std::size_t next,
                                   FieldPath& way) const {
    const Frame& frame = frames_[depth];
    const auto index = field_index(*frame.node, frame.current, path[next]);
    if (!index) return std::nullopt;
    way.indices.push_back(*index);
    const Built& member = (*frame.built)[*index];
    return follow(member.node, member.type, path, next + 1, way);
  }

  // Path from the scope to the type at frames_[depth]. Arrays and sequences on the way add nothing: the field
  // is in the same element.
  FieldPath way_to(std::size_t depth) const {
    FieldPath way;
    way.scope = scope_;
    for (std::size_t i = 0; i < depth; ++i) {
      const auto kind = frames_[i].node->kind;
      if (kind == TypeNode::Kind::structure || kind == TypeNode::Kind::variant)
        way.indices.push_back(frames_[i].current);
    }
    return way;
  }

  static std::optional<std::pair<Scope, std::size_t>> absolute(const std::vector<std::string>& path) {
    const std::string whole = tsdl::joined(path);
    for (std::size_t i = 0; i < kScopes; ++i) {
      const std::string prefix = std::string(kScopeNames[i]) + ".";
      if (whole.starts_with(prefix)) {
        return std::pair(static_cast<Scope>(i),
                         static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '.')));
      }
    }
    return std::nullopt;
  }

  FieldPath find_field(const Expression& expression, const char* what, Built& target) const {
    const auto& path = expression.path;
    if (const auto place = absolute(path)) return find_absolute(expression, what, *place, target);
    // Searches the surrounding structures, innermost first.
    for (std::size_t depth = frames_.size(); depth-- > 0;) {
      if (frames_[depth].node->kind != TypeNode::Kind::structure) continue;
      FieldPath way = way_to(depth);
      if (auto found = follow_open(depth, path, 0, way)) {
        target = std::move(*found);
        return way;
      }
    }
    // Searches earlier scopes, last first.
    for (std::size_t i = index_of(scope_); i-- > 0;) {
      if (!types_.scopes[i]) continue;
      FieldPath way;
      way.scope = static_cast<Scope>(i);
      if (auto found = follow(types_.scopes[i]->node, types_.scopes[i]->type, path, 0, way)) {
        target = std::move(*found);
        return way;
      }
    }
    fail(expression.where,
         "{}, {}, is not found; it must be a field that comes before, in the "
         "structures around or in an earlier "
         "scope",
         what, in_quotes(tsdl::joined(path)));
  }

  FieldPath find_absolute(const Expression& expression, const char* what,
                          const std::pair<Scope, std::size_t>& place, Built& target) const {
    const auto& path = expression.path;
    const auto [scope, first] = place;
    const auto* scope_name = kScopeNames[index_of(scope)];
    FieldPath way;
    way.scope = scope;
    if (scope > scope_) {
      fail(expression.where, "{}, {}, comes after what it is for; {} is read before {}", what,
           in_quotes(tsdl::joined(path)), kScopeNames[index_of(scope_)], scope_name);
    }
    std::optional<Built> found;
    if (scope < scope_) {
      const auto& built = types_.scopes[index_of(scope)];
      if (!built) {
        fail(expression.where, "{}, {}, is not found: there is no {} here", what,
             in_quotes(tsdl::joined(path)), scope_name);
      }
      found = follow(built->node, built->type, path, first, way);
    } else {
      found = follow_around(path, first, way);
    }
    if (!found) {
      fail(expression.where, "{}, {}, is not found; it must be a field of {} that comes before", what,
           in_quotes(tsdl::joined(path)), scope_name);
    }
    target = std::move(*found);
    return way;
  }

  // Resolves a path from the top of the scope being built: it follows the types around the field, then leaves
  // them.
  std::optional<Built> follow_around(const std::vector<std::string>& path, std::size_t next,
                                     FieldPath& way) const {
    for (std::size_t depth = 0; depth < frames_.size() && next < path.size(); ++depth) {
      const Frame& frame = frames_[depth];
      const auto kind = frame.node->kind;
      if (kind != TypeNode::Kind::structure && kind != TypeNode::Kind::variant) continue;
      if (kind == TypeNode::Kind::structure) {
        FieldPath turned = way;
        if (auto found = follow_open(depth, path, next, turned)) {
          way = std::move(turned);
          return found;
        }
      }
      const auto& around = (*frame.node->fields)[frame.current].name;
      if (around != path[next] && !is_alike(around, path[next])) return std::nullopt;
      way.indices.push_back(frame.current);
      ++next;
    }
    return std::nullopt;
  }

  Types& types_;
  Scope scope_;
  std::vector<Frame> frames_;
  std::uint64_t scope_fields_ = 0;
};

}  // namespace

FieldTypePtr build_scope(Types& types, Scope scope, const tsdl::Attribute& attribute) {
  Built built = ScopeBuilder(types, scope).build(attribute);
  types.all_fields += built.fields;
  auto type = built.type;
  types.scopes[index_of(scope)] = std::move(built);
  return type;
}

}  // namespace perflab::ctf
