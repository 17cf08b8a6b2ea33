package org.sparkfp4.verify;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.output.FileDigest;

/** Reads a file on an executor and holds it against its claim. */
final class FileVerifier implements Function<FileClaim, VerifiedFile> {
  private static final long serialVersionUID = 1L;

  private final SerializableConfiguration configuration;

  FileVerifier(SerializableConfiguration configuration) {
    this.configuration = configuration;
  }

  @Override
  public VerifiedFile call(FileClaim claim) throws IOException {
    Path path = ChildPath.of(new Path(claim.folder()), claim.name());
    FileSystem fs = RawFileSystem.of(path, configuration.value());
    CRC32C crc = new CRC32C();
    FileDigest found;
    try {
      long length = fs.getFileStatus(path).getLen();
      if (length != claim.length()) {
        return VerifiedFile.unread(
            claim.title() + " has " + length + " bytes, in the manifest " + claim.length());
      }

      if (claim.sha256() == null && claim.crc32c() == null) {
        return VerifiedFile.unread(null);
      }

      try (InputStream in = new CheckedInputStream(fs.open(path), crc)) {
        found = FileDigest.copy(claim.name(), in, OutputStream.nullOutputStream());
      }
    } catch (FileNotFoundException e) {
      return VerifiedFile.unread("Missing " + claim.missing() + ", which is in the manifest");
    }

    return new VerifiedFile(true, found.length(), difference(claim, found, crc));
  }

  /** Of the bytes; null where there is none. */
  private static String difference(FileClaim claim, FileDigest found, CRC32C crc) {
    if (claim.sha256() != null && !found.sha256().equals(claim.sha256())) {
      return claim.title() + " has the SHA-256 " + found.sha256() + ", in the manifest it is " + claim.sha256();
    }

    String sum = String.format("%08x", crc.getValue());
    return claim.crc32c() == null || sum.equals(claim.crc32c())
        ? null
        : claim.title() + " has the CRC-32C " + sum + ", when it was read it was " + claim.crc32c();
  }
}
