#ifndef TALLY_LIB_DECIDE_DECIDE_H_
#define TALLY_LIB_DECIDE_DECIDE_H_

#include "lib/decide/request.h"
#include "lib/decide/world.h"

// The decisions. Each is a pure function of the facts in `world` and the request: it changes the facts, appends receipt
// drafts, and answers. Requests of a batch are decided one after the other on the same world, so each sees what those
// before it did. What `world` must hold beforehand:
//   the permit; the call named (by key or id) with all its attempts, and the call it is bound to; for Authorize, the
//   intents of the request, and the calls that did them last in the same permit; for the others, the call's intents.
// The call's lease is looked at first: whatever touches a call whose lease is over parks it.
namespace tally::decide {

Answer Authorize(World& world, const AuthorizeRequest& request);
Answer Commit(World& world, const CommitRequest& request);
Answer Extend(World& world, const ExtendRequest& request);
Answer Resolve(World& world, const ResolveRequest& request);
Answer Correct(World& world, const CorrectRequest& request);
Answer Claim(World& world, const ClaimRequest& request);
Answer BeginReplay(World& world, const ReplayRequest& request);
Answer Sweep(World& world, const SweepRequest& request);
Answer Revoke(World& world, const PermitRequest& request);
Answer Close(World& world, const PermitRequest& request);

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_DECIDE_H_
