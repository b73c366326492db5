// Large blocks of memory from the system, in huge pages where it has them.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace pagelift {

class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t size) : length_(size + (size >= kHuge ? kHuge : 0)) {
    base_ = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    const uintptr_t at = (uintptr_t)base_;
    bytes_ = (uint8_t*)(size >= kHuge ? (at + kHuge - 1) / kHuge * kHuge : at);
#if defined(MADV_HUGEPAGE)
    if (size >= kHuge) madvise(bytes_, size, MADV_HUGEPAGE);  // advice only: without it, small pages
#endif
  }
  ~Memory() {
    if (base_) munmap(base_, length_);
  }
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(length_, other.length_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  uint8_t* bytes() const { return bytes_; }  // zero at first, at a multiple of the page size

 private:
  static constexpr int64_t kHuge = int64_t{1} << 21;
  void* base_ = nullptr;
  int64_t length_ = 0;
  uint8_t* bytes_ = nullptr;
};

}  // namespace pagelift
