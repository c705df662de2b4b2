# Uses of sudo, one a line: when, who, tenant, verb, path, HTTP status, reason.
#   jq -rf sudo.jq audit.log | sort -u
# An exec or a watch is in the log twice, when it starts and when it ends; sort -u makes one line of both.
select(.impersonatedUser)
| . as $event
| .impersonatedUser.groups[]?
| select(endswith("-sudoers"))
| [
    $event.requestReceivedTimestamp,
    $event.user.username,
    rtrimstr("-sudoers"),
    $event.verb,
    $event.requestURI,
    $event.responseStatus.code,
    ($event.impersonatedUser.extra["tenancy.warren.dev/reason"] // [] | join("; "))
  ]
| @tsv
