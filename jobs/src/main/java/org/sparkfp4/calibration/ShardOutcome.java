package org.sparkfp4.calibration;

import java.io.Serializable;
import java.util.List;

/**
 * What a task made of the entries of a file.
 *
 * @param file the file's name, or null where it was not written
 * @param length its bytes
 * @param sha256 SHA-256 of its bytes, lower-case hexadecimal
 * @param modules figures of its modules
 * @param refusals why activations cannot be used
 */
record ShardOutcome(String file, long length, String sha256, List<ModuleStatistics> modules, List<String> refusals)
    implements Serializable {}
