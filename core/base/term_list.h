// A list that a struct may have of itself.
#ifndef KERNELSTREAM_CORE_BASE_TERM_LIST_H_
#define KERNELSTREAM_CORE_BASE_TERM_LIST_H_

#include <vector>

namespace kernelstream {

// Thread-compatible. A vector of Term that may be a member, with a default, of what a Term has as a
// member: its own special members are not constexpr, so compilers look at Term only once it is
// complete (clang asks for it earlier where those of std::vector are used).
template <typename Term>
class TermList : public std::vector<Term> {
 public:
  using std::vector<Term>::vector;
  TermList();
  TermList(const TermList& other);
  TermList(TermList&& other) noexcept;
  TermList& operator=(const TermList& other);
  TermList& operator=(TermList&& other) noexcept;
  ~TermList();
};

template <typename Term>
TermList<Term>::TermList() = default;
template <typename Term>
TermList<Term>::TermList(const TermList& other) = default;
template <typename Term>
TermList<Term>::TermList(TermList&& other) noexcept = default;
template <typename Term>
TermList<Term>& TermList<Term>::operator=(const TermList& other) = default;
template <typename Term>
TermList<Term>& TermList<Term>::operator=(TermList&& other) noexcept = default;
template <typename Term>
TermList<Term>::~TermList() = default;

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_TERM_LIST_H_
