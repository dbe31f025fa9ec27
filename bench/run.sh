#!/bin/bash
# Measures tallyd beside a plain service, or, with --gateway, tally-gateway beside other MCP proxies. See
# docs/performance.md; options: --help. ./dev bench builds and runs this.
set -euo pipefail
if [ "${1-}" = --gateway ]; then
  shift
  exec python3 "$(dirname "${BASH_SOURCE[0]}")/gateway/run.py" "$@"
fi
exec tally-bench "$@"
