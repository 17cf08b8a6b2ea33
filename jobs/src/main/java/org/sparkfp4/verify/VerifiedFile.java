package org.sparkfp4.verify;

import java.io.Serializable;

/**
 * What holding a file against its claim came to.
 *
 * @param read whether its bytes were read, all of them
 * @param bytes how many
 * @param difference in words, or null where there is none
 */
record VerifiedFile(boolean read, long bytes, String difference) implements Serializable {
  /** One that is missing, or that its length told enough of. */
  static VerifiedFile unread(String difference) {
    return new VerifiedFile(false, 0, difference);
  }

  void addTo(Differences differences) {
    if (difference != null) {
      differences.add(difference);
    }
  }
}
