// SPDX-License-Identifier: Apache-2.0
#include "import/contexts.h"

#include <algorithm>
#include <array>

namespace pkprof {
namespace {

struct Vector {
  std::string_view function;
  std::string_view source;
  bool for_kernel = false;
};

// Below a softirq's loop; names of Linux 3.x to 6.18.
constexpr std::array vectors = {
    Vector{"net_rx_action", "softirq:NET_RX"},
    Vector{"net_tx_action", "softirq:NET_TX"},
    Vector{"blk_done_softirq", "softirq:BLOCK"},
    Vector{"run_timer_softirq", "softirq:TIMER"},
    Vector{"tasklet_action", "softirq:TASKLET"},
    Vector{"tasklet_hi_action", "softirq:HI"},
    Vector{"hrtimer_run_softirq", "softirq:HRTIMER"},
    Vector{"irq_poll_softirq", "softirq:IRQ_POLL"},
    Vector{"rcu_core_si", "softirq:RCU", true},
    Vector{"rcu_core", "softirq:RCU", true},
    Vector{"rcu_process_callbacks", "softirq:RCU", true},
    Vector{"run_rebalance_domains", "softirq:SCHED", true},
    Vector{"sched_balance_softirq", "softirq:SCHED", true},
};

bool is_softirq_loop(std::string_view f) {
  return f == "handle_softirqs" || f == "__do_softirq" || f == "do_softirq" ||
         f == "__softirqentry_text_start" || f == "do_softirq_own_stack";
}

bool is_interrupt_entry(std::string_view f) {
  return f.starts_with("asm_sysvec_") || f == "asm_common_interrupt" || f == "common_interrupt" ||
         f == "ret_from_intr" || f == "apic_timer_interrupt" || f == "call_function_interrupt" ||
         f == "call_function_single_interrupt" || f == "reschedule_interrupt" ||
         f == "irq_work_interrupt" || f == "do_IRQ" || f == "el1_irq" || f == "el0_irq" ||
         f == "el1h_64_irq" || f == "el0t_64_irq";
}

std::string interrupt_source(std::string_view entry) {
  if (entry.contains("apic_timer")) return "irq:local_timer";
  if (entry.contains("call_function")) return "ipi:unknown";
  if (entry.contains("reschedule")) return "ipi:reschedule";
  if (entry.contains("irq_work")) return "irq:irq_work";
  return "irq:unknown";
}

// "__x64_sys_read", "__do_sys_read", "sys_read": "read".
std::string_view system_call_of(std::string_view f) {
  for (const std::string_view prefix :
       {"__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "sys_", "SyS_"})
    if (f.starts_with(prefix)) return f.substr(prefix.size());
  return {};
}

bool is_fault(std::string_view f) {
  return f == "asm_exc_page_fault" || f == "exc_page_fault" || f == "page_fault" ||
         f == "do_page_fault" || f == "el0_da" || f == "el0_ia";
}

}  // namespace

Contexts contexts_of(std::span<const ContextFrame> frames) {
  Contexts out;
  while (out.kernel < frames.size() && frames[out.kernel].kernel) ++out.kernel;
  const auto kernel = frames.first(out.kernel);
  // The outermost of these is where the asynchronous part begins; the innermost softirq says which.
  const ContextFrame* softirq = nullptr;
  std::string interrupt;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const std::string_view f = kernel[i].function;
    const auto* const vector = std::ranges::find(vectors, f, &Vector::function);
    if (vector != vectors.end() && out.source.empty()) {
      out.source = vector->source;
      out.for_kernel = vector->for_kernel;
    }
    if (is_softirq_loop(f)) {
      softirq = &kernel[i];
      out.asynchronous = i + 1;
    } else if (is_interrupt_entry(f)) {
      // A softirq at an interrupt's end is a softirq's: the way to it belongs to it.
      if (!softirq && interrupt.empty()) interrupt = interrupt_source(f);
      out.asynchronous = i + 1;
    }
  }
  if (!out.asynchronous) {
    out.source.clear();
    out.for_kernel = false;
  } else if (!softirq) {
    out.source = interrupt;
    out.for_kernel = false;
  } else if (out.source.empty()) {
    out.source = "softirq:unknown";
  }
  for (const ContextFrame& frame : kernel.subspan(out.asynchronous)) {
    const std::string_view call = system_call_of(frame.function);
    // The outermost one: a call may make another.
    if (!call.empty()) out.entry = "syscall:" + std::string(call);
    if (out.entry.empty() && is_fault(frame.function)) out.entry = "fault";
  }
  if (out.entry.empty() && out.kernel > out.asynchronous) out.entry = "kernel";
  return out;
}

}  // namespace pkprof
