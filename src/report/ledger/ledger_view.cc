// SPDX-License-Identifier: Apache-2.0
// The view that there is without asking for one.
#include "report/ledger/ledger_text.h"
#include "report/report_json.h"
#include "report/view.h"

namespace pkprof {

extern const ReportView ledger_view{"ledger", ledger_text, report_json};

}  // namespace pkprof
