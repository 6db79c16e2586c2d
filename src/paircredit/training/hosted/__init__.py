"""Training where environments live on the host."""

from paircredit.training.hosted.groups import Group, HostedMembers, Waiting, group_sizes

__all__ = ["Group", "HostedMembers", "Waiting", "group_sizes"]
