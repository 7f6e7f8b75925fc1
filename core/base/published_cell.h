// A pointer that one writer replaces and any number of readers reach without waiting.
#ifndef KERNELSTREAM_CORE_BASE_PUBLISHED_CELL_H_
#define KERNELSTREAM_CORE_BASE_PUBLISHED_CELL_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace kernelstream {

// Base of objects that are shared by counted references. The object is immutable once it is shared.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void AddRef() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  mutable std::atomic<int64_t> references_{1};
};

// Owns one reference. Thread-compatible.
template <typename T>
class Ref {
 public:
  Ref() = default;
  // Takes over the reference a new object is born with.
  static Ref Adopt(const T* object) { return Ref(object); }
  static Ref Share(const T* object) {
    if (object != nullptr) object->AddRef();
    return Ref(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) object_->AddRef();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->Unref();
  }
  const T* get() const { return object_; }
  const T* operator->() const { return object_; }
  const T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Gives the reference up.
  const T* Release() { return std::exchange(object_, nullptr); }

 private:
  explicit Ref(const T* object) : object_(object) {}
  const T* object_ = nullptr;
};

namespace published_cell_internal {

// Epoch-based reclamation (Fraser 2004). A reader is inside a critical section of a few
// instructions: it announces itself in its thread's slot, loads the pointer, takes a reference,
// leaves. A writer that has replaced a pointer drops the old reference only after every slot was
// seen outside, or inside since after the replacement.
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<const void*>::is_always_lock_free);

// One per thread, in a list that only grows; slots of ended threads are taken again.
struct alignas(64) ReaderSlot {
  std::atomic<uint64_t> inside{0};  // odd: in a critical section; each entry and exit adds 1
  std::atomic<bool> taken{true};
  ReaderSlot* next = nullptr;
};

// This thread's slot. Wait-free except for a thread's first call, which may allocate and is
// lock-free.
ReaderSlot* ThisThreadSlot();

// Returns when every critical section that had begun before the call has ended. Writers only;
// critical sections are a few instructions long, so this spins with yields only while such a thread
// is descheduled.
void WaitForReaders();

}  // namespace published_cell_internal

// Thread-safe. Holds a counted reference to a T (a RefCounted).
// Get() is wait-free: a bounded number of instructions, no lock, no retry, whatever writers do.
// Set() may be called by one writer at a time (the caller serialises); it waits for readers that
// are inside Get(), never for those that hold a Ref.
template <typename T>
class PublishedCell {
 public:
  PublishedCell() = default;
  explicit PublishedCell(Ref<T> first) : object_(first.Release()) {}
  PublishedCell(const PublishedCell&) = delete;
  PublishedCell& operator=(const PublishedCell&) = delete;
  // No reader may be inside Get().
  ~PublishedCell() { Ref<T>::Adopt(object_.load(std::memory_order_acquire)); }

  // The current object; null only if nothing was ever set.
  Ref<T> Get() const {
    published_cell_internal::ReaderSlot* slot = published_cell_internal::ThisThreadSlot();
    // Sequentially consistent, so that a writer which does not see us inside has its new pointer
    // seen by us.
    slot->inside.fetch_add(1, std::memory_order_seq_cst);
    Ref<T> result = Ref<T>::Share(object_.load(std::memory_order_seq_cst));
    slot->inside.fetch_add(1, std::memory_order_release);
    return result;
  }

  void Set(Ref<T> next) {
    const T* old = object_.exchange(next.Release(), std::memory_order_seq_cst);
    published_cell_internal::WaitForReaders();
    Ref<T>::Adopt(old);
  }

 private:
  std::atomic<const T*> object_{nullptr};
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_PUBLISHED_CELL_H_
