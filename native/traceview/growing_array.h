// An array that grows to hundreds of megabytes without copying: large arrays have their own pages, which the
// kernel moves by remapping and may make huge pages. Only for trivially copyable values. Members behave like
// those of std::vector with the same name.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace perflab::traceview {

template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  ~GrowingArray() { release(); }
  GrowingArray(GrowingArray&& other) noexcept { swap(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    swap(other);
    return *this;
  }
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;

  [[gnu::always_inline]] void push_back(T value) {
    if (size_ == capacity_) [[unlikely]] grow(capacity_ == 0 ? 16 : 2 * capacity_);
    data_[size_++] = value;
  }
  void assign(std::size_t count, T value) {
    reserve(count);
    for (size_ = 0; size_ < count; ++size_) data_[size_] = value;
  }
  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }

 private:
  static constexpr std::size_t kMapped = std::size_t{1} << 20;  // from this size on, pages are mapped

  void swap(GrowingArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  [[nodiscard]] static bool is_mapped(std::size_t capacity) noexcept { return capacity * sizeof(T) >= kMapped; }

  [[gnu::noinline]] void grow(std::size_t capacity) {
    const std::size_t bytes = capacity * sizeof(T);
    void* made = nullptr;
    if (is_mapped(capacity_)) {
      made = mremap(data_, capacity_ * sizeof(T), bytes, MREMAP_MAYMOVE);
    } else if (is_mapped(capacity)) {
      made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (made != MAP_FAILED && size_ != 0) std::memcpy(made, data_, size_ * sizeof(T));
    } else {
      made = std::realloc(data_, bytes);
      if (made == nullptr) made = MAP_FAILED;
    }
    if (made == MAP_FAILED) throw std::bad_alloc();
    if (is_mapped(capacity)) {
      if (!is_mapped(capacity_)) std::free(data_);
      (void)madvise(made, bytes, MADV_HUGEPAGE);  // failure is harmless
    }
    data_ = static_cast<T*>(made);
    capacity_ = capacity;
  }
  void release() noexcept {
    if (is_mapped(capacity_)) {
      munmap(data_, capacity_ * sizeof(T));
    } else {
      std::free(data_);
    }
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace perflab::traceview
