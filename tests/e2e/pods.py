# SPDX-License-Identifier: Apache-2.0
"""pods.py MANIFEST FOLDER - the pods that a cluster would make of a manifest, without a cluster.

For pod I it writes FOLDER/I.sh, which runs the container's command with the environment that its
controller and the kubelet give it, and a line of FOLDER/names: host name, full name, and the other
names by which DNS finds it.  A secretKeyRef is the text "0123456789abcdef0123456789abcdef".  Of AWS
Batch and SkyPilot it does the same: there hosts are addresses, 10.77.0.1 the first one.
"""
import json
import shlex
import sys

import yaml

DOMAIN = "default.svc.cluster.local"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


class Pod:
    def __init__(self, spec, host, subdomain, index, from_controller):
        container = spec["containers"][0]
        self.host, self.subdomain, self.index = host, subdomain, index
        self.command = container.get("command", []) + container.get("args", [])
        self.env = {e["name"]: self.value(e) for e in container.get("env", [])}
        self.env |= from_controller
        self.env["KUBERNETES_SERVICE_HOST"] = "10.96.0.1"

    def value(self, entry):
        if "value" in entry:
            return entry["value"]
        source = entry["valueFrom"]
        if "secretKeyRef" in source:
            return "0123456789abcdef" * 2
        path = source["fieldRef"]["fieldPath"]
        return {INDEX: str(self.index), "metadata.name": self.host}[path]

    def names(self):
        if not self.subdomain:
            return [self.host, self.host]
        short = f"{self.host}.{self.subdomain}"
        return [self.host, f"{short}.{DOMAIN}", f"{short}.default.svc", f"{short}.default", short]


def pods_of_job(name, spec, subdomain=None, env=lambda index: {}):
    template = spec["template"]["spec"]
    subdomain = subdomain or template.get("subdomain")
    assert spec["completionMode"] == "Indexed" and spec["parallelism"] == spec["completions"]
    return [Pod(template, f"{name}-{i}", subdomain, i, {"JOB_COMPLETION_INDEX": str(i)} | env(i))
            for i in range(spec["completions"])]


def job(objects):
    made = objects["Job"]
    service, name = objects["Service"], made["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
    assert service["spec"]["selector"] == {"job-name": name}
    template = made["spec"]["template"]["spec"]
    assert service["metadata"]["name"] == template["subdomain"]
    if "podFailurePolicy" in made["spec"]:
        assert template["restartPolicy"] == "Never"
    return pods_of_job(name, made["spec"])


def jobset(objects):
    made = objects["JobSet"]
    name = made["metadata"]["name"]
    pods = []
    for group in made["spec"]["replicatedJobs"]:
        for replica in range(group.get("replicas", 1)):
            pods += pods_of_job(f"{name}-{group['name']}-{replica}", group["template"]["spec"], name)
    return pods


def trainjob(objects):
    made, runtime = objects["TrainJob"], objects["TrainingRuntime"]
    name, trainer = made["metadata"]["name"], made["spec"]["trainer"]
    assert made["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    spec = node["template"]["spec"]
    template = spec["template"]["spec"]
    assert node["name"] == template["containers"][0]["name"] == "node"
    template["containers"][0]["command"] = trainer["command"]
    spec |= {"completionMode": "Indexed", "completions": trainer["numNodes"],
             "parallelism": trainer["numNodes"]}
    workers = trainer.get("numProcPerNode", runtime["spec"]["mlPolicy"]["torch"]["numProcPerNode"])
    return pods_of_job(f"{name}-node-0", spec, name, lambda index: {
        "PET_NNODES": str(trainer["numNodes"]), "PET_NPROC_PER_NODE": str(workers),
        "PET_NODE_RANK": str(index), "PET_MASTER_ADDR": f"{name}-node-0-0.{name}",
        "PET_MASTER_PORT": "29500"})


def leader_worker_set(objects):
    made = objects["LeaderWorkerSet"]
    name, template = made["metadata"]["name"], made["spec"]["leaderWorkerTemplate"]
    spec = template["workerTemplate"]["spec"]
    assert "restartPolicy" not in spec
    return [Pod(spec, f"{name}-0" if i == 0 else f"{name}-0-{i}", name, i,
                {"LWS_LEADER_ADDRESS": f"{name}-0.{name}.default", "LWS_WORKER_INDEX": str(i),
                 "LWS_GROUP_SIZE": str(template["size"])}) for i in range(template["size"])]


def skypilot(task):
    nodes = task["num_nodes"]
    addresses = "\n".join(f"10.77.0.{i + 1}" for i in range(nodes))
    command = task["run"].replace("build/bin/", "").split()
    return [Pod({"containers": [{"command": command}]}, f"ip-10-77-0-{i + 1}", None, i,
                {"SKYPILOT_NODE_IPS": addresses, "SKYPILOT_NODE_RANK": str(i),
                 "SKYPILOT_NUM_NODES": str(nodes), "SKYPILOT_NUM_GPUS_PER_NODE": "0",
                 "SKYPILOT_TASK_ID": "sky-2026-01-02-03-04-05-678901_c_1"}) for i in range(nodes)]


def aws_batch(definition):
    nodes = definition["nodeProperties"]
    count, main = nodes["numNodes"], nodes["mainNode"]
    pods = []
    for i in range(count):
        env = {"AWS_BATCH_JOB_NODE_INDEX": str(i), "AWS_BATCH_JOB_NUM_NODES": str(count),
               "AWS_BATCH_JOB_MAIN_NODE_INDEX": str(main), "AWS_BATCH_JOB_ID": f"7f3c#{i}"}
        if i != main:
            env["AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"] = f"10.77.0.{main + 1}"
        container = nodes["nodeRangeProperties"][0]["container"]
        pods.append(Pod({"containers": [container]}, f"ip-10-77-0-{i + 1}", None, i, env))
    return pods


KINDS = {"Job": job, "JobSet": jobset, "TrainJob": trainjob, "LeaderWorkerSet": leader_worker_set}


def pods_of(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            return aws_batch(json.load(file))
        objects = list(yaml.safe_load_all(file))
    if "num_nodes" in objects[0]:
        return skypilot(objects[0])
    by_kind = {o["kind"]: o for o in objects}
    return next(KINDS[kind](by_kind) for kind in KINDS if kind in by_kind)


def main():
    path, folder = sys.argv[1:]
    pods = pods_of(path)
    with open(f"{folder}/names", "w", encoding="utf-8") as names:
        for i, pod in enumerate(pods):
            print(*pod.names(), file=names)
            words = ["exec", "env", "-i", 'PATH="$PATH"'] + [
                f"{name}={shlex.quote(value)}" for name, value in pod.env.items()]
            with open(f"{folder}/{i}.sh", "w", encoding="utf-8") as script:
                print(*words, '"$@"', shlex.join(pod.command), file=script)


main()
