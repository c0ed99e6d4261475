"""A certificate of hosts: a study of known faults, and what the lab reports of them."""

from collections.abc import Mapping
from pathlib import Path

from loadlab.kinds.certificate import analyse, show, words
from loadlab.kinds.study.kind import StudyKind
from loadlab.model import Certificate, OptionValue, Record, Summary
from loadlab.plan import plan_document
from loadlab.plan.plan_document import Plan
from loadlab.plan.user_options import Request
from loadlab.report.first_screen.key_facts import LabTests
from loadlab.report.html import Headline, Section
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class CertificateKind(StudyKind):
    playbook = "playbooks/certify.yml"
    expects_void = True

    def is_requested(self, request: Request, options: Mapping[str, OptionValue]) -> bool:
        # It is planned as the study that it is.
        return False

    def is_planned(self, plan: Plan) -> bool:
        return plan.study is not None and bool(plan.study.expectations)

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        assert plan.study is not None
        generators = {
            item.cell_id: item.cell.load.generator for item in plan_document.items(plan.experiments)
        }
        certificate = analyse.build(summary, plan.study, generators, analyse.injected(run))
        return {**super().documents(run, plan, summary), run.certificate: certificate}

    def lab_tests(self, run: RunDir) -> LabTests | None:
        certificate = documents.read_or_none(run.certificate, Certificate)
        return words.lab_tests(certificate) if certificate else None

    def chosen(self, run: RunDir) -> set[str]:
        # Its cell only has the noise floor.
        return set()

    def headlines(self, run: RunDir) -> list[Headline]:
        certificate = documents.read_or_none(run.certificate, Certificate)
        own = [show.headline(certificate)] if certificate else []
        return [*own, *super().headlines(run)]

    def sections(self, run: RunDir) -> list[Section]:
        certificate = documents.read_or_none(run.certificate, Certificate)
        return [*([show.section(certificate)] if certificate else []), *super().sections(run)]

    def next_steps(self, run: RunDir, plan: Plan) -> list[str]:
        """Return what to do after a certificate: measure on these hosts, or certify them again."""
        certificate = documents.read_or_none(run.certificate, Certificate)
        hosts = f" {plan_document.read(run.path).inventory_args}".rstrip()
        if certificate is not None and certificate.passed:
            named = "its report names this certificate"
            return [f"Next: ansible-playbook lab.yml -e framework=<name>{hosts}  # {named}"]
        return [
            "Next: see in the report's section Certificate what failed; stop other work on the "
            "hosts",
            f"      ansible-playbook {self.playbook}{hosts}  # once more",
        ]
