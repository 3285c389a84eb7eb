# SPDX-License-Identifier: MIT
# Servers under load while probes come and go (soak/soak.py says how): two minutes in
# all, half an hour with FULL=1.  MODULE is none: no row of the table.
[ -n "${SOAK_SECONDS:-}" ] || SOAK_SECONDS=${FULL:+1800}
SOAK_SECONDS=${SOAK_SECONDS:-120} python3 "$HERE/soak/soak.py" "$UKP" "$BUILT" | tee "$T/soak"
passed=$((passed + $(grep -c '^ok ' "$T/soak")))
failed=$((failed + $(grep -c '^FAILED ' "$T/soak")))
grep -q '^ok ' "$T/soak" || failed=$((failed + 1))
