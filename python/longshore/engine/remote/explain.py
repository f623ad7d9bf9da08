"""What ``explain=True`` tells: the SQL that each source receives, and the engine's."""

from longshore.engine.remote.planning import Plan

__all__ = ["explained"]


def explained(plan: Plan) -> str:
    """Write a plan as SQL, with a comment before each piece."""
    lines = []
    for read in plan.reads:
        lines += [f"-- {read.source}: {read.name}", read.sql, ""]
    if plan.whole is None:
        lines += ["-- engine", plan.sql.strip()]
    else:
        lines += [f"-- engine: nothing to do, {plan.reads[0].source} answers the whole query"]
    return "\n".join(lines)
