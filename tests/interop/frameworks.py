# SPDX-License-Identifier: Apache-2.0
"""frameworks.py trainer|accelerate|lightning FILE - trains a tiny model of random weights on made data, on the CPU.

Rank 0 writes the class of the group's backend, the losses and the sum of the weights to FILE; FILE.d is its folder."""
import json
import os
import sys

import torch
import torch.distributed as dist

STEPS = 6
losses = []


def data():
    torch.manual_seed(5)
    return [{"input_ids": t, "labels": t} for t in torch.randint(64, (64, 12))]


def model():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(7)
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=12, n_embd=32, n_layer=2, n_head=2))


def trainer(folder):
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        folder, ddp_backend="gloo", use_cpu=True, max_steps=STEPS, learning_rate=0.01, gradient_accumulation_steps=2,
        per_device_train_batch_size=4, per_device_eval_batch_size=4, eval_strategy="steps", eval_steps=3,
        save_steps=3, logging_steps=1, report_to=[], disable_tqdm=True)
    for resume in False, os.path.join(folder, f"checkpoint-{STEPS // 2}"):
        own = Trainer(model(), arguments, train_dataset=data(), eval_dataset=data()[:20])
        own.train(resume_from_checkpoint=resume)
        rows = own.state.log_history
        losses.extend(v for row in rows for k, v in row.items() if k in ("loss", "eval_loss", "grad_norm"))
    return own.model


def accelerate(folder):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    own = model()
    optimizer = torch.optim.AdamW(own.parameters(), 0.01)
    loader = torch.utils.data.DataLoader(data(), 5, shuffle=True)
    own, optimizer, loader = accelerator.prepare(own, optimizer, loader)
    for _ in range(2):
        for batch in loader:
            with accelerator.accumulate(own):
                loss = own(**batch).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(own.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather_for_metrics(loss.detach()[None]).mean().item())
        accelerator.save_state(folder)
        accelerator.wait_for_everyone()
        accelerator.load_state(folder)
    return accelerator.unwrap_model(own)


def lightning(folder):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = model()

        def training_step(self, batch, _):
            loss = self.inner(**batch).loss
            self.log("loss", loss, sync_dist=True)
            return loss

        def on_train_batch_end(self, outputs, batch, _):
            losses.append(self.all_gather(outputs["loss"]).mean().item())

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 0.01)

    own = lightning.Trainer(
        accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_steps=STEPS, logger=False,
        default_root_dir=folder, enable_progress_bar=False, enable_model_summary=False)
    module = Module()
    own.fit(module, torch.utils.data.DataLoader(data(), 4, shuffle=True))
    own.save_checkpoint(os.path.join(folder, "saved"))
    losses.append(own.callback_metrics["loss"].item())
    return module


which, path = sys.argv[1:]
trained = {"trainer": trainer, "accelerate": accelerate, "lightning": lightning}[which](path + ".d")
if dist.get_rank() == 0:
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    weights = sum(p.double().sum().item() for p in trained.parameters())
    with open(path, "w", encoding="utf-8") as file:
        json.dump([type(backend).__name__, losses, weights], file)
dist.barrier()
dist.destroy_process_group()
