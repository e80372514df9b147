#!/usr/bin/env bash
# Shows `kubectl lease` on a real control plane, and on real nodes where there can be any, which live as
# long as this script. Run it by `make demo`, which builds what it needs.
set -euo pipefail
cd "$(dirname "$0")"

sandbox=target/debug/examples/sandbox
trap 'exit 130' INT TERM

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '$ %s\n' "$*"; "$@"; }
# As show, of a command that refuses.
refused() { show "$@" </dev/null || printf '(exit code %s)\n' "$?"; }
# For a look at what was printed.
pause() { sleep 3; }

nodes=2
if ! missing=$("$sandbox" missing); then
  nodes=0
  printf 'No real nodes on this machine (%s): the last part is shown on node objects.\n' "$missing"
fi
"$sandbox" up "$nodes" >/dev/null
# Only now: where there was a sandbox already, it is not ours to end.
trap '"$sandbox" down' EXIT
folder=$PWD/target/sandbox
export KUBECONFIG=$folder/admin-1.kubeconfig
export PATH=$PWD/target/debug:$KUBEBUILDER_ASSETS:$PATH

# Runs a watch, and gives each of its lines to a command, which succeeds at the last one to be shown:
# follow SECONDS-BETWEEN-LINES COMMAND KUBECTL…
follow() {
  local patience=$1 last=$2 line from found='' ended=0
  shift 2
  printf '$ %s\n' "$*"
  coproc watch { exec "$@"; }
  local pid=$!
  # Its own end of the pipe goes when the watch does.
  exec {from}<&"${watch[0]}"
  while read -r -t "$patience" line <&"$from"; do
    printf '%s\n' "$line"
    if "$last" "$line"; then found=1 && break; fi
  done
  kill "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || ended=$?
  exec {from}<&-
  if [ -z "$found" ]; then
    # 130 is Ctrl-C, which the watch has seen before this script does.
    [ "$ended" = 130 ] && exit 130
    printf 'error: the watch ended, or said nothing for %s seconds, too early\n' "$patience" >&2
    exit 1
  fi
}

# Waits until a command succeeds: await SECONDS COMMAND…
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ "$SECONDS" -ge "$end" ]; then
      printf 'error: waited in vain for: %s\n' "$*" >&2
      exit 1
    fi
    sleep 0.2
  done
}

apiservers() {
  title "A control plane of three kube-apiservers. Which of them are alive?"
  show kubectl lease apiservers

  title "One is killed. kubectl still lists its lease, and will for an hour:"
  kill -KILL "$(cat "$folder/cp-3/pid")"
  show kubectl get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver

  title "Watching it go (three renewals missed, half a minute) and come back:"
  follow 90 cp_3_is_back kubectl lease apiservers --watch

  title "All is well again:"
  show kubectl lease apiservers
}

# Has it started again when it is late.
cp_3_is_back() {
  case $1 in
    *" late "*)
      title "It is late:"
      show kubectl lease apiservers
      printf '\n'
      ("$folder/cp-3/run" >/dev/null 2>&1 &) ;;
    *" restarted "* | *" joined "*) return 0 ;;
  esac
  return 1
}

elections() {
  title "Three kube-controller-managers, one of which leads. Who is next?"
  show kubectl lease candidates

  # Not cp-3's: it talked to the kube-apiserver that was just killed, and may not have found it again.
  title "The one on cp-2 is preferred, and leadership moves to it:"
  show kubectl lease candidates set-priority cp-2 100 --yes --wait=1m
  show kubectl lease candidates explain kube-controller-manager
  show kubectl lease leaders
}

maintenance() {
  title "Three nodes. Jane holds one for maintenance; john is told so, and waits:"
  show kubectl lease maint acquire node-1 --holder jane@laptop --reason 'replacing a disk'
  refused kubectl lease maint acquire node-1 --holder john@desk
  show kubectl lease maint list
  (sleep 3 && kubectl lease maint release node-1 --holder jane@laptop >/dev/null) &
  show kubectl lease maint acquire node-1 --holder john@desk --wait=1m
  show kubectl lease maint release node-1 --holder john@desk
}

commands() {
  title "A command runs while its lease is held, and is ended when the lease is lost:"
  (sleep 3 && kubectl patch lease job -n default --type=merge -p '{"spec":{"holderIdentity":"another-holder"}}' >/dev/null) &
  refused kubectl lease hold job --duration 6s -- sleep 600
  wait
}

# Without kubelets: the pod is an object only.
stranded() {
  title "A StatefulSet's pod is on a node without heartbeats. Force-delete it?"
  kubectl create -f - >/dev/null <<'MANIFEST'
{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 1,
 "selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}},
 "spec": {"nodeName": "node-3", "containers": [{"name": "db", "image": "db"}]}}}}
MANIFEST
  await 60 quietly kubectl get pod db-0
  show kubectl lease partitions node-3
  refused kubectl lease force-delete pod db-0
  kubectl delete statefulset db --cascade=orphan >/dev/null

  title "The machine is powered off. Marked out of service, its pods are deleted:"
  show kubectl lease fence node-3 --confirm --wait=2m
}

partition() {
  title "Two StatefulSets on node-1, each writing to its own file of a shared disk:"
  for name in orders payments; do
    sed "s/: db\$/: $name/" "$folder/example.yaml" | kubectl apply -f - >/dev/null
  done
  for name in orders payments; do await 90 writes "$name-0" node-1; done
  show kubectl get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,UID:.metadata.uid

  title "node-1 is partitioned: its kubelet cannot be reached, its containers go on running"
  printf '$ echo cut >target/sandbox/node-1/network\n'
  echo cut >"$folder/node-1/network"
  follow 90 both_terminating kubectl lease partitions node-1 --watch

  title "orders, by kubectl's force: the replacement starts on node-2, and both write"
  show kubectl delete pod orders-0 --force --grace-period=0
  await 90 writes orders-0 node-2
  pause
  show tail -n 6 target/sandbox/disk/orders-0
  pause

  title "payments, by kubectl lease: refused, with what is safe instead"
  refused kubectl lease force-delete pod payments-0 --confirm
  pause

  title "The advice is followed. The machine of node-1 is powered off:"
  printf '$ echo off >target/sandbox/node-1/power\n'
  echo off >"$folder/node-1/power"
  await 60 [ ! -e "$folder/node-1/machine/pid" ]

  title "It is marked out of service: its pods are deleted, and the replacement runs"
  show kubectl lease fence node-1 --confirm --i-have-fenced --wait=2m
  await 90 writes payments-0 node-2

  title "node-1 is connected and switched on, and put back into service:"
  printf '$ echo up >target/sandbox/node-1/network\n$ echo on >target/sandbox/node-1/power\n'
  echo up >"$folder/node-1/network"
  echo on >"$folder/node-1/power"
  show kubectl wait --for=condition=Ready --timeout=2m node node-1
  show kubectl lease fence node-1 --undo --confirm
  # The kubelet has looked at what it ran before.
  pause

  title "Which pods wrote to each file, by seconds:"
  "$sandbox" histories 'orders-0=kubectl --force' 'payments-0=kubectl lease'
}

quietly() { "$@" >/dev/null 2>&1; }

# Whether the newest lines of a file are those of a node, among others.
writes() { # FILE NODE
  quietly grep " $2\$" <<<"$(tail -n 5 "$folder/disk/$1" 2>/dev/null)"
}

# Looks at the cluster: a line of the watch tells of the first pod of several.
both_terminating() {
  local deleted
  deleted=$(kubectl get pods -o 'jsonpath={.items[*].metadata.deletionTimestamp}')
  [ "$(wc -w <<<"$deleted")" = 2 ]
}

apiservers
elections
maintenance
commands
if [ "$nodes" = 0 ]; then stranded; else partition; fi
