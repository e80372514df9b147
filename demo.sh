#!/usr/bin/env bash
# Shows `kubectl lease` on a real control plane that lives as long as this script.
# Run it by `make demo`, which builds what it needs.
set -euo pipefail
cd "$(dirname "$0")"

sandbox=target/debug/examples/sandbox
trap 'exit 130' INT TERM

bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '$ %s\n' "$*"; "$@"; }

"$sandbox" up >/dev/null
# Only now: where there was a sandbox already, it is not ours to end.
trap '"$sandbox" down' EXIT
folder=$PWD/target/sandbox
export KUBECONFIG=$folder/admin-1.kubeconfig
export PATH=$PWD/target/release:$KUBEBUILDER_ASSETS:$PATH

title "A control plane of three kube-apiservers. Which of them are alive?"
show kubectl lease apiservers

title "One is killed. kubectl still lists its lease, and will for an hour:"
kill -KILL "$(cat "$folder/cp-3/pid")"
show kubectl get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver

title "Watching it go (three renewals missed, half a minute) and come back:"
printf '$ kubectl lease apiservers --watch\n'
coproc watch { exec kubectl lease apiservers --watch; }
watch_pid=$!
back=
while read -r -t 90 line <&"${watch[0]}"; do
  printf '%s\n' "$line"
  case $line in
    *" late "*)
      title "It is late:"
      show kubectl lease apiservers
      printf '\n'
      ("$folder/cp-3/run" >/dev/null 2>&1 &) ;;
    *" restarted "* | *" joined "*) back=1 && break ;;
  esac
done
kill "$watch_pid" 2>/dev/null || true
ended=0
wait "$watch_pid" 2>/dev/null || ended=$?
if [ -z "$back" ]; then
  # 130 is Ctrl-C, which the watch has seen before this script does.
  [ "$ended" = 130 ] && exit 130
  printf 'error: the watch ended, or said nothing for 90 seconds, before cp-3 was back\n' >&2
  exit 1
fi

title "All is well again:"
show kubectl lease apiservers

title "Three kube-controller-managers, one of which leads. Who is next?"
show kubectl lease candidates

# Not cp-3's: it talked to the kube-apiserver that was just killed, and may not have found it again.
title "The one on cp-2 is preferred, and the lead moves to it:"
show kubectl lease candidates set-priority cp-2 100 --yes --wait=1m
show kubectl lease candidates explain kube-controller-manager
show kubectl lease leaders

title "Three nodes. Jane holds one for maintenance; john is told so, and waits:"
show kubectl lease maint acquire node-1 --holder jane@laptop --reason 'replacing a disk'
show kubectl lease maint acquire node-1 --holder john@desk || printf '(exit code %s)\n' "$?"
show kubectl lease maint list
(sleep 3 && kubectl lease maint release node-1 --holder jane@laptop >/dev/null) &
show kubectl lease maint acquire node-1 --holder john@desk --wait=1m
show kubectl lease maint release node-1 --holder john@desk

title "A StatefulSet's pod is stranded on a node that nobody hears of. Is it safe to force-delete it?"
kubectl create -f - >/dev/null <<'END'
{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 1,
 "selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}},
 "spec": {"nodeName": "node-3", "containers": [{"name": "db", "image": "db"}]}}}}
END
until kubectl get pod db-0 >/dev/null 2>&1; do sleep 0.2; done
show kubectl lease partitions node-3
# Not on a terminal: here it would ask.
show kubectl lease force-delete pod db-0 </dev/null || printf '(exit code %s)\n' "$?"
kubectl delete statefulset db --cascade=orphan >/dev/null
printf 'The machine is switched off, so say so and let its pods go:\n'
show kubectl lease fence node-3 --confirm --wait=2m

title "A command runs while its lease is held, and is ended when the lease is lost:"
(sleep 3 && kubectl patch lease job -n default --type=merge -p '{"spec":{"holderIdentity":"somebody-else"}}' >/dev/null) &
show kubectl lease hold job --duration 6s -- sleep 600 || printf '(exit code %s)\n' "$?"
wait
