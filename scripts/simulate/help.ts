export const help = `Shows what a retry policy does to a service that goes down and comes back:
load over time, what each jitter would change, and what to change.

  npm run simulate -- [policy] [options]

The policy is a file, the name of a preset, or JSON; without one, the default.

  npm run simulate
  npm run simulate -- scheduler --outage 5s
  npm run simulate -- policy.json --clients 1000 --outage 30s --capacity 100
  npm run simulate -- '{ "maxAttempts": 10, "cap": "20s" }' --outage 30s
  npm run simulate -- policy.json --svg load.svg --jitters none,equal,full

A policy file is one JSON object; every field has a default:

  { "maxAttempts": 10, "base": "500ms", "cap": "20s", "jitter": "full" }

The world it is tried in:

  --clients 1000        how many clients, with one call to make each
  --spread 100ms        the time over which they make their first calls
  --outage 500ms        how long the service is down
  --outage-start 0ms    when it goes down
  --capacity 500        requests that it can serve in a second
  --queue 200ms         what would have to queue for longer is refused (503)
  --latency 50ms        how long any answer takes
  --retry-after 5s      the Retry-After of a refusal; none unless given
  --seed 1              another seed, other random numbers; the same, the same
  --horizon 1h          no attempt starts after this
  --limit 2000000       after so many attempts it stops
  --bucket 1s           the width of one step of load in --json and --svg

What comes out:

  --jitters none,full   compare these only
  --svg load.svg        write a picture of the comparison
  --title "..."         its title
  --json                print the numbers instead

Things to try: an outage longer than the policy lasts; --spread 10s, where
jitter matters less; --retry-after 2s; a deadline in the policy.`;
