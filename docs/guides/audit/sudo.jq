# Uses of sudo, one a line: when, who, tenant, verb, path, HTTP status, reason. With sudo on request, the SudoRequest has the reason.
#   jq -rf sudo.jq audit.log | sort -u
# An exec or a watch is in the log twice, when it starts and when it ends; sort -u makes one line of both.
select(.impersonatedUser)
| . as $event
| (
    (.impersonatedUser.groups[]? | select(endswith("-sudoers")) | rtrimstr("-sudoers")),
    (.impersonatedUser.username // "" | select(startswith("system:serviceaccount:warren-sudo:"))
      | ltrimstr("system:serviceaccount:warren-sudo:"))
  )
| [
    $event.requestReceivedTimestamp,
    $event.user.username,
    .,
    $event.verb,
    $event.requestURI,
    $event.responseStatus.code,
    ($event.impersonatedUser.extra["tenancy.warren.dev/reason"] // [] | join("; "))
  ]
| @tsv
