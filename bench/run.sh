#!/bin/bash
# Measures tallyd beside a plain service. See docs/performance.md; options: --help. ./dev bench builds and runs this.
set -euo pipefail
exec tally-bench "$@"
