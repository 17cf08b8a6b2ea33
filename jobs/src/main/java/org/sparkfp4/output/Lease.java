package org.sparkfp4.output;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Instant;
import java.util.UUID;

/**
 * What the file of an {@link OutputLock} says.
 *
 * @param owner the run's own id
 * @param host where it runs
 * @param pid its process
 * @param started when that process began, milliseconds since the epoch: a process number may be used again
 * @param renewed when the holder last said that it is alive, likewise
 */
record Lease(String owner, String host, long pid, long started, long renewed) {
  /** That of a run of this process which begins now. */
  static Lease mine() {
    ProcessHandle self = ProcessHandle.current();
    return new Lease(
        UUID.randomUUID().toString(), hostName(), self.pid(), started(self), System.currentTimeMillis());
  }

  /** A host without a name is taken for another host each time, so that its leases end by their age alone. */
  private static String hostName() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      return "unnamed-" + UUID.randomUUID();
    }
  }

  /** The same, said now. */
  Lease renew() {
    return new Lease(owner, host, pid, started, System.currentTimeMillis());
  }

  /** Whether its holder is no more, as far as another can tell. */
  boolean isOver(Lease asker) {
    if (host.equals(asker.host)) {
      return ProcessHandle.of(pid).map(process -> started(process) != started).orElse(true);
    }

    return asker.renewed - renewed > OutputLock.EXPIRY.toMillis();
  }

  private static long started(ProcessHandle process) {
    return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
  }
}
