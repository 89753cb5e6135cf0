// Strings and sequences of generated messages. Their layout is that of message::Sequence and of rosidl's C structs, and their
// memory is from malloc(3), so a decoded message is such a struct, and such a struct can be sent as it is.
//
// Example:
//   JointState state;
//   state.name = {"panda_joint1", "panda_joint2"};
//   state.position.resize(2);
//   state.header.frame_id = "world";
#pragma once

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace perflab::messages {

// A string, of at most `Bound` characters unless that is 0, always zero-terminated. Throws std::length_error beyond the bound,
// and std::bad_alloc.
template <typename Character, std::size_t Bound = 0>
class BasicText {
 public:
  using View = std::basic_string_view<Character>;

  BasicText() { reserve(0); }
  BasicText(View text) { assign(text); }
  BasicText(const Character* text) { assign(text); }
  BasicText(const std::basic_string<Character>& text) { assign(text); }
  BasicText(const BasicText& other) { assign(other.view()); }
  BasicText(BasicText&& other) : BasicText() { swap(other); }
// GCC 12 takes memory of a struct that an exception left half made, or that was swapped away, for what is freed here.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuse-after-free"
#endif
  ~BasicText() { std::free(data_); }
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic pop
#endif
  BasicText& operator=(const BasicText& other) {
    if (this != &other) assign(other.view());
    return *this;
  }
  BasicText& operator=(BasicText&& other) noexcept {
    swap(other);
    return *this;
  }
  BasicText& operator=(View text) {
    assign(text);
    return *this;
  }
  BasicText& operator=(const Character* text) { return *this = View(text); }
  BasicText& operator=(const std::basic_string<Character>& text) { return *this = View(text); }

  [[nodiscard]] View view() const noexcept { return {data_, size_}; }
  operator View() const noexcept { return view(); }
  [[nodiscard]] std::basic_string<Character> string() const { return std::basic_string<Character>(view()); }
  [[nodiscard]] const Character* c_str() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void clear() noexcept {
    size_ = 0;
    capacity_ = 1;
    data_[0] = 0;
  }
  friend bool operator==(const BasicText& one, const BasicText& other) noexcept { return one.view() == other.view(); }
  friend bool operator==(const BasicText& one, View other) noexcept { return one.view() == other; }
  friend bool operator==(const BasicText& one, const Character* other) noexcept { return one.view() == other; }

 private:
  void swap(BasicText& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  // Makes room for `size` characters and the zero; the contents are lost if the memory moves. The capacity is what rosidl says
  // (message/type.h), not what there is room for.
  void reserve(std::size_t size) {
    if (size < malloc_usable_size(data_) / sizeof(Character)) return;
    auto* const memory = static_cast<Character*>(std::malloc((size + 1) * sizeof(Character)));
    if (memory == nullptr) throw std::bad_alloc();
    std::free(data_);
    data_ = memory;
    clear();
  }
  void assign(View text) {
    if (Bound > 0 && text.size() > Bound) throw std::length_error("text: longer than its type allows");
    reserve(text.size());
    std::copy(text.begin(), text.end(), data_);
    data_[text.size()] = 0;
    size_ = text.size();
    capacity_ = size_ + 1;
  }

  Character* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

template <std::size_t Bound = 0>
using Text = BasicText<char, Bound>;
template <std::size_t Bound = 0>
using WideText = BasicText<char16_t, Bound>;

// A sequence, of at most `Bound` elements unless that is 0. Like std::vector, except that all elements up to its capacity are
// constructed. Throws as BasicText does.
template <typename Element, std::size_t Bound = 0>
class Sequence {
 public:
  using value_type = Element;

  Sequence() = default;
  Sequence(std::initializer_list<Element> elements) { assign(elements.begin(), elements.end()); }
  Sequence(const Sequence& other) { assign(other.begin(), other.end()); }
  Sequence(Sequence&& other) noexcept { swap(other); }
  ~Sequence() { destroy(); }
  Sequence& operator=(const Sequence& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  Sequence& operator=(Sequence&& other) noexcept {
    swap(other);
    return *this;
  }
  Sequence& operator=(std::initializer_list<Element> elements) {
    assign(elements.begin(), elements.end());
    return *this;
  }
  // From anything with begin() and end().
  template <typename Range>
    requires(!std::is_same_v<std::remove_cvref_t<Range>, Sequence>)
  Sequence& operator=(const Range& range) {
    assign(std::begin(range), std::end(range));
    return *this;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] Element* data() noexcept { return data_; }
  [[nodiscard]] const Element* data() const noexcept { return data_; }
  [[nodiscard]] Element* begin() noexcept { return data_; }
  [[nodiscard]] const Element* begin() const noexcept { return data_; }
  [[nodiscard]] Element* end() noexcept { return data_ + size_; }
  [[nodiscard]] const Element* end() const noexcept { return data_ + size_; }
  [[nodiscard]] Element& operator[](std::size_t index) noexcept { return data_[index]; }
  [[nodiscard]] const Element& operator[](std::size_t index) const noexcept { return data_[index]; }
  [[nodiscard]] Element& front() noexcept { return data_[0]; }
  [[nodiscard]] const Element& front() const noexcept { return data_[0]; }
  [[nodiscard]] Element& back() noexcept { return data_[size_ - 1]; }
  [[nodiscard]] const Element& back() const noexcept { return data_[size_ - 1]; }
  // Throws std::out_of_range.
  [[nodiscard]] const Element& at(std::size_t index) const {
    if (index >= size_) throw std::out_of_range("sequence: no element of that index");
    return data_[index];
  }

  // Keeps existing elements; new ones are default-constructed.
  void resize(std::size_t size) {
    reserve(size);
    for (std::size_t i = size_; i < size; ++i) data_[i] = Element{};
    size_ = size;
  }
  void reserve(std::size_t size) {
    if (Bound > 0 && size > Bound) throw std::length_error("sequence: longer than its type allows");
    if (size > capacity_) move_to(size);
  }
  void clear() noexcept { size_ = 0; }
  void push_back(Element element) {
    if (size_ == capacity_) grow();
    data_[size_] = std::move(element);
    ++size_;
  }
  Element& emplace_back() {
    push_back(Element{});
    return back();
  }
  template <typename Iterator>
  void assign(Iterator from, Iterator to) {
    const auto count = static_cast<std::size_t>(std::distance(from, to));
    reserve(count);
    for (std::size_t i = 0; i < count; ++i, ++from) data_[i] = *from;
    size_ = count;
  }

  friend bool operator==(const Sequence& one, const Sequence& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end());
  }

 private:
  void swap(Sequence& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void grow() {
    const std::size_t more = std::max<std::size_t>(4, 2 * capacity_);
    if (Bound > 0 && size_ == Bound) throw std::length_error("sequence: longer than its type allows");
    move_to(Bound > 0 ? std::min(more, Bound) : more);
  }
  void move_to(std::size_t capacity) {
    Sequence larger;
    larger.data_ = static_cast<Element*>(std::calloc(capacity, sizeof(Element)));
    if (larger.data_ == nullptr) throw std::bad_alloc();
    for (; larger.capacity_ < capacity; ++larger.capacity_) std::construct_at(larger.data_ + larger.capacity_);
    std::move(begin(), end(), larger.data_);
    larger.size_ = size_;
    swap(larger);
  }
  void destroy() noexcept {
    std::destroy_n(data_, capacity_);
    std::free(data_);
  }

  Element* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace perflab::messages
