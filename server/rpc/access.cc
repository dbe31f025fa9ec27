#include "server/rpc/access.h"

namespace tally::rpc {
namespace {

using v1::ADMIN;
using v1::AUDITOR;
using v1::GATEWAY;
using v1::OPERATOR;
using v1::RECONCILER;

constexpr Rule kRules[] = {
    {"tally.v1.Tenants.CreateTenant", {ADMIN}},
    {"tally.v1.Tenants.ListTenants", {ADMIN}},
    {"tally.v1.Tenants.CreatePrincipal", {ADMIN}},
    {"tally.v1.Tenants.ListPrincipals", {ADMIN}},
    {"tally.v1.Tenants.DisablePrincipal", {ADMIN}},

    {"tally.v1.Permits.Mint", {OPERATOR}},
    {"tally.v1.Permits.Get", {OPERATOR}},
    {"tally.v1.Permits.GetByToken", {GATEWAY}},
    {"tally.v1.Permits.List", {OPERATOR}},
    {"tally.v1.Permits.Revoke", {OPERATOR}},
    {"tally.v1.Permits.Close", {OPERATOR}},

    {.method = "tally.v1.Calls.Authorize", .roles = {GATEWAY}, .hot = true},
    {.method = "tally.v1.Calls.Commit", .roles = {GATEWAY}, .when_disabled = true, .hot = true},
    {.method = "tally.v1.Calls.Extend", .roles = {GATEWAY}, .hot = true},
    {"tally.v1.Calls.GetCall", {GATEWAY, OPERATOR}},
    {"tally.v1.Calls.ListCalls", {GATEWAY, OPERATOR}},
    {"tally.v1.Calls.Correct", {OPERATOR}},

    {"tally.v1.ParkedCalls.List", {OPERATOR, RECONCILER}},
    {"tally.v1.ParkedCalls.Claim", {RECONCILER}},
    {"tally.v1.ParkedCalls.Resolve", {OPERATOR, RECONCILER}},
    {"tally.v1.ParkedCalls.NoteLookUp", {RECONCILER}},
    {"tally.v1.ParkedCalls.BeginReplay", {RECONCILER}},

    {"tally.v1.Webhooks.Create", {OPERATOR}},
    {"tally.v1.Webhooks.List", {OPERATOR}},
    {"tally.v1.Webhooks.Delete", {OPERATOR}},
    {"tally.v1.Webhooks.Rotate", {OPERATOR}},
    {"tally.v1.Webhooks.Test", {OPERATOR}},

    {"tally.v1.Receipts.Get", {AUDITOR}},
    {"tally.v1.Receipts.Head", {AUDITOR}},
    {"tally.v1.Receipts.List", {AUDITOR}},
    {"tally.v1.Receipts.Jws", {AUDITOR}},
    {"tally.v1.Receipts.Keys", {ADMIN, AUDITOR}},

    {"tally.v1.Reports.Get", {OPERATOR, AUDITOR}},
};

}  // namespace

std::span<const Rule> Rules() { return kRules; }

const Rule* FindRule(std::string_view method) {
  for (const Rule& rule : kRules) {
    if (rule.method == method) return &rule;
  }
  return nullptr;
}

}  // namespace tally::rpc
