//! Machines: a tenant gets two of them, a cluster runs on them, and one is handed over to another tenant.

use super::ledger::Ledger;
use super::{Stage, judged, made};
use crate::output;
use anyhow::{Context, bail};
use interlock_api::nodes::{NodeClaim, NodePhase, PhysicalNode, Rack, Tenant};
use interlock_api::placement::WorkloadCluster;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const RACK: &str = "demo-rack";
/// Each machine with the DPUs and the ports that it is wired to.
const MACHINES: [(&str, &[(&str, &str)]); 2] =
    [("demo-n1", &[("d1", "p1")]), ("demo-n2", &[("d1", "p2"), ("d2", "p1")])];
const TENANTS: [&str; 2] = ["blue", "green"];
const CLAIM: &str = "demo";
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The machines on their stage.
pub(super) struct Machines<'a> {
    pub(super) stage: &'a Stage,
}

impl Machines<'_> {
    /// Blue gets both machines; whether every port of them is open for blue, and for nobody else.
    pub(super) async fn assign(&self) -> anyhow::Result<bool> {
        output::say(
            "tenant blue gets two machines: promised: each is programmed for blue alone, in all of its \
             DPUs\n",
        )?;
        self.create().await?;
        let began = Instant::now();
        // An earlier round gave it one.
        self.claim("green", 0).await?;
        self.claim("blue", 2).await?;
        for (machine, _) in MACHINES {
            self.is_of(machine, "blue").await?;
            let ms = began.elapsed().as_millis();
            output::say(&format!("  {ms:>5} ms  {machine} is programmed for blue\n"))?;
        }
        self.check(&[("demo-n1", "blue"), ("demo-n2", "blue")]).await
    }

    /// Blue gives back one of the machines that a cluster runs on, and green gets it, once the ledger has left the cluster.
    pub(super) async fn hand_over(
        &self,
        cluster: &str,
        ledger: &Ledger<'_>,
    ) -> anyhow::Result<bool> {
        output::say(&format!(
            "\n{cluster} runs on the machines of blue, and one of them is reclaimed and given to green: \
             promised: {cluster} is drained first, and no\nport has anything of blue when green gets \
             it\n"
        ))?;
        let began = Instant::now();
        self.runs_on(cluster, &["demo-n1", "demo-n2"]).await?;
        // A namespace that asks for this very cluster would not move away.
        ledger.desires(None).await?;
        let epoch = ledger.epoch();
        self.claim("blue", 1).await?;
        let freed = self.freed().await?;
        let stored = ledger.stored_in(cluster, epoch).await?;
        let ms = began.elapsed().as_millis();
        output::say(&format!(
            "  {ms:>5} ms  {freed} is in the pool: every DPU reported it clean\n"
        ))?;
        let open = self.open_for(freed)?;
        let left: Vec<String> =
            open.into_iter().flatten().map(|of| format!("{freed} is open for {of}")).collect();
        if !judged(&left, &format!("no port of {freed} is open for anybody"))?
            || ledger.left(cluster).await?.is_none()
        {
            return Ok(false);
        }
        let late = ledger.logged_in(epoch).saturating_sub(stored);
        let broken: Vec<String> = (late > 0)
            .then(|| format!("the ledger wrote {late} records on {cluster} without {freed}"))
            .into_iter()
            .collect();
        if !judged(&broken, &format!("the ledger had left {cluster} when {freed} was released"))? {
            return Ok(false);
        }
        let stays = MACHINES.iter().find(|(name, _)| *name != freed).map_or("", |(name, _)| name);
        self.runs_on(cluster, &[stays]).await?;
        self.claim("green", 1).await?;
        self.is_of(freed, "green").await?;
        let ms = began.elapsed().as_millis();
        output::say(&format!("  {ms:>5} ms  {freed} is programmed for green\n"))?;
        self.check(&[(freed, "green"), (stays, "blue")]).await
    }

    /// Says that a cluster runs on these machines, as they are assigned now, and waits until each machine says so, too.
    async fn runs_on(&self, cluster: &str, machines: &[&str]) -> anyhow::Result<()> {
        let mut named = Vec::new();
        for name in machines {
            let node = self.node(name).await?;
            let (uid, epoch) = (node.uid(), node.status_or_default().epoch);
            named.push(json!({"node": {"name": name, "uid": uid}, "epoch": epoch}));
        }
        let clusters: Api<WorkloadCluster> = Api::all(self.stage.hub.clone());
        let patch = Patch::Merge(json!({"spec": {"machines": named}}));
        let patched = clusters.patch(cluster, &PatchParams::default(), &patch).await;
        patched.with_context(|| format!("cannot set the machines of {cluster}"))?;
        let began = Instant::now();
        for name in machines {
            while !is_on(&self.node(name).await?, cluster) {
                if began.elapsed() > TIMEOUT {
                    bail!(
                        "{name} does not say that {cluster} runs on it: see interlock node explain {name}"
                    );
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    async fn create(&self) -> anyhow::Result<()> {
        let rack = json!({"metadata": {"name": RACK, "labels": {"interlock.dev/embedded": "true"}},
            "spec": {"dpus": [{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]}});
        self.make::<Rack>("Rack", rack).await?;
        for (number, (name, ports)) in MACHINES.iter().enumerate() {
            let port = |(at, (dpu, port)): (usize, &(&str, &str))| json!({"rack": RACK, "dpu": dpu, "port": port, "mac": format!("02:00:00:00:{number:02x}:{at:02x}")});
            let dpus: Vec<Value> = ports.iter().enumerate().map(port).collect();
            let machine = json!({"metadata": {"name": name}, "spec": {"rack": RACK, "dpus": dpus}});
            self.make::<PhysicalNode>("PhysicalNode", machine).await?;
        }
        for tenant in TENANTS {
            let tenant = json!({"metadata": {"name": tenant},
                "spec": {"plane": {"logicalCluster": tenant}, "nodeQuota": 2}});
            self.make::<Tenant>("Tenant", tenant).await?;
        }
        Ok(())
    }

    async fn make<K>(&self, kind: &str, mut object: Value) -> anyhow::Result<()>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        object["apiVersion"] = Value::from("interlock.dev/v1alpha1");
        object["kind"] = Value::from(kind);
        let object: K = serde_json::from_value(object).context("an object of the demonstration")?;
        let api: Api<K> = Api::all(self.stage.hub.clone());
        made(api.create(&PostParams::default(), &object).await).map(|_| ())
    }

    /// Claims so many machines for a tenant, in its own control plane, which may just be coming up.
    async fn claim(&self, tenant: &str, count: u32) -> anyhow::Result<()> {
        let claims: Api<NodeClaim> = Api::all(self.stage.client_of(tenant));
        let wanted = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": CLAIM}, "spec": {"count": count, "selector": {"rack": RACK}}});
        let (params, began) = (PatchParams::apply("interlock-demo").force(), Instant::now());
        loop {
            match claims.patch(CLAIM, &params, &Patch::Apply(&wanted)).await {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > TIMEOUT => {
                    return Err(error).with_context(|| {
                        format!("cannot claim machines in the control plane of {tenant}")
                    });
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    async fn node(&self, name: &str) -> anyhow::Result<PhysicalNode> {
        let nodes: Api<PhysicalNode> = Api::all(self.stage.hub.clone());
        nodes.get(name).await.with_context(|| format!("cannot read the PhysicalNode {name}"))
    }

    /// Waits until a machine is a tenant's, with its network.
    async fn is_of(&self, name: &str, tenant: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let status = self.node(name).await?.status.unwrap_or_default();
            let is_its =
                status.assignment.as_ref().is_some_and(|assigned| assigned.tenant.name == tenant);
            let ready = |it: &interlock_kernel::conditions::Condition| {
                it.type_ == "NetworkReady" && it.status == "True"
            };
            if is_its && status.conditions.iter().any(ready) {
                return Ok(());
            }
            if began.elapsed() > TIMEOUT {
                bail!(
                    "machine {name} is not programmed for {tenant}: see interlock node explain {name}"
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until one of the machines is in the pool again.
    async fn freed(&self) -> anyhow::Result<&'static str> {
        let began = Instant::now();
        loop {
            for (name, _) in MACHINES {
                let status = self.node(name).await?.status.unwrap_or_default();
                if status.phase == NodePhase::Available {
                    return Ok(name);
                }
            }
            if began.elapsed() > TIMEOUT {
                bail!("no machine came back: see interlock node list");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whom each port of a machine is open for, by the records of the drivers.
    fn open_for(&self, name: &str) -> anyhow::Result<Vec<Option<String>>> {
        let ports = MACHINES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, it)| it);
        let mut open = Vec::new();
        for (dpu, port) in ports {
            let path = self.stage.dpus.join(format!("{RACK}.{dpu}")).join(format!("{port}.record"));
            let text = std::fs::read(&path)
                .with_context(|| format!("cannot read the record {}", path.display()))?;
            let record: Value = serde_json::from_slice(&text)
                .with_context(|| format!("{} is not a record", path.display()))?;
            open.push(record["entry"]["tenant"].as_str().map(str::to_owned));
        }
        Ok(open)
    }

    /// Whether every port of these machines is open for their tenants, and for nobody else.
    async fn check(&self, owners: &[(&str, &str)]) -> anyhow::Result<bool> {
        let tenants: Api<Tenant> = Api::all(self.stage.hub.clone());
        let (mut broken, mut ports) = (Vec::new(), 0);
        for (machine, tenant) in owners {
            let uid = tenants.get(tenant).await.context("cannot read the Tenant")?.uid();
            for open in self.open_for(machine)? {
                ports += 1;
                if open != uid {
                    let of = open.unwrap_or_else(|| "nobody".to_owned());
                    broken.push(format!(
                        "a port of {machine} is open for {of}, and not for {tenant}"
                    ));
                }
            }
        }
        judged(&broken, &format!("the records of all {ports} ports say so: one tenant each"))
    }
}

fn is_on(node: &PhysicalNode, cluster: &str) -> bool {
    let status = node.status.as_ref();
    status.and_then(|it| it.cluster.as_ref()).is_some_and(|it| it.name == cluster)
}
