#include "core/model/update_rule.h"

#include "core/model/rules.h"

namespace kernelstream {

std::span<const UpdateRuleEntry> UpdateRuleRegistry() {
  static const std::vector<UpdateRuleEntry>& entries =
      *new std::vector<UpdateRuleEntry>{ProximalRule(), NewestBlockRule(), BlockNewtonRule()};
  return entries;
}

const UpdateRuleEntry* FindUpdateRule(absl::string_view name) {
  for (const UpdateRuleEntry& entry : UpdateRuleRegistry()) {
    if (entry.doc.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace kernelstream
