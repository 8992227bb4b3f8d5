# SPDX-License-Identifier: Apache-2.0
# examples/kubernetes without a cluster: each pod is a host with the name, the /etc/hosts and exactly the environment that
# its controller and the kubelet would give it (pods.py), and the ranks of all pods find each other.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: no python3 with PyYAML"; exit 77; }
export PATH=$CT_BUILD/bin:$PATH

# pods MANIFEST: a host for each; $count
pods() {
    local i j names
    no_hosts
    rm -rf pods && mkdir pods
    python3 "$CT_SOURCE/tests/e2e/pods.py" "$CT_SOURCE/examples/kubernetes/$1" pods || exit 1
    mapfile -t lines <pods/names
    count=${#lines[@]}
    hosts "$count" || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
    for ((i = 0; i < count; i++)); do
        read -ra names <<<"${lines[i]}"
        # The kubelet's lines, then what DNS would say.
        printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n10.77.0.%d\t%s\t%s\n' \
            $((i + 1)) "${names[1]}" "${names[0]}" >pods/$i.hosts
        for ((j = 0; j < count; j++)); do
            read -ra others <<<"${lines[j]}"
            echo "10.77.0.$((j + 1)) ${others[*]:1}" >>pods/$i.hosts
        done
        ${on[i]} sh -c "umount /etc/hosts && mount --bind $work/pods/$i.hosts /etc/hosts && hostname ${names[0]}" || exit 1
    done
}

# on_pods [NAME=VALUE...]: all of them, with these words in front of the command; $codes $out $err
on_pods() {
    local i pid=()
    for ((i = count - 1; i >= 0; i--)); do # node 0 may be the last that starts
        timeout 60 ${on[i]} sh pods/$i.sh "$@" >pods/$i.out 2>pods/$i.err </dev/null &
        pid[i]=$!
    done
    codes=
    for ((i = 0; i < count; i++)); do
        wait "${pid[i]}"
        codes+=" $?"
    done
    out=$(cat pods/*.out | sort) err=$(cat pods/*.err) code=$codes
}

ranks() { for ((i = 0; i < $1; i++)); do echo "rank $i of $1: the sum is $(($1 * ($1 + 1) / 2))"; done; }

for manifest in indexed-job elastic-job jobset trainjob leaderworkerset skypilot; do
    pods $manifest.yaml
    on_pods
    expect "$manifest.yaml: the pods are one job" is "$codes $out" "$(printf ' 0%.0s' $(seq $count)) $(ranks $((2 * count)))"
    [ $manifest = skypilot ] || expect "with a secret there is nothing to warn of" lacks "$err" "no job secret"
done
pods aws-batch.json
on_pods
expect "aws-batch.json: the nodes are one job" is "$codes $out" " 0 0 $(ranks 4)"

# What --explain says on a pod.
pods indexed-job.yaml
sed -i 's/ ctrun / ctrun --explain /' pods/1.sh
explained=$(${on[1]} sh pods/1.sh 2>&1 | tr -s ' ')
for line in "nnodes 2 PET_NNODES" "node-rank 1 JOB_COMPLETION_INDEX (a Kubernetes Job)" \
    "master-addr train-0.workers.default.svc.cluster.local" "JOB_COMPLETION_INDEX (a Kubernetes Job)"; do
    expect "--explain on pod 1: $line" has "$explained" "$line"
done

# A pod without the Service's name, or on its node's network.
pods indexed-job.yaml
${on[1]} hostname node17
expect "a pod with its node's name is told what is missing" has "$(${on[1]} sh pods/1.sh 2>&1)" \
    "a Kubernetes Job started ctrun on 2 nodes, but JOB_COMPLETION_INDEX=1 on host node17 does not say where node 0 is: add --master-addr=HOST"

# As a container's first process.
cat >first <<'END'
(setsid sleep 1000 &)
trap 'exit 75' TERM
touch up$RANK
while :; do sleep 0.05; done
END
unshare -p -f --kill-child --mount-proc "$CTRUN" --nproc-per-node=2 sh first >first.out 2>first.err &
container=$!
expect "as process 1 of a container" within 20 test -e up0 -a -e up1
kill -TERM "$(pgrep -P $container)"
wait $container 2>/dev/null
expect "ctrun passes SIGTERM on and ends with 143" is "$? $(grep -c '(SIGTERM): asked 2 workers to stop' first.err)" "143 1"
finish
