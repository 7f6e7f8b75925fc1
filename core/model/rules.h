// The entries of the update-rule registry.
#ifndef KERNELSTREAM_CORE_MODEL_RULES_H_
#define KERNELSTREAM_CORE_MODEL_RULES_H_

#include "core/model/update_rule.h"

namespace kernelstream {

UpdateRuleEntry ProximalRule();
UpdateRuleEntry NewestBlockRule();
UpdateRuleEntry BlockNewtonRule();

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_RULES_H_
