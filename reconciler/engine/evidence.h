// What is kept of an answer: as a note, and as the evidence of a verdict. Pure.
#pragma once

#include "reconciler/config/config.h"
#include "reconciler/engine/judge.h"
#include "reconciler/lookup/lookup.h"
#include "tally/v1/calls.pb.h"
#include "tally/v1/parked.pb.h"

namespace tally::reconciler {

inline constexpr size_t kNoteBodyMax = 64 * 1024;
inline constexpr size_t kNoteDetailMax = 1024;

// The raw answer, cut to what a note holds, which its detail then says.
v1::LookUp NoteOf(const Answer& answer, const ToolConfig& tool);

// `answer` is empty where nothing was asked; `provider` is then not looked at.
v1::Evidence EvidenceOf(const v1::ParkedCall& parked, const Decision& decision, const Answer& answer,
                        const ProviderConfig* provider);

}  // namespace tally::reconciler
