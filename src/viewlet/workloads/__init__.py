"""The paper's workloads: its twelve queries (Appendix A), and streams of events to run them on (§6)."""
