/**
 * The second reading of a finished checkpoint, by the formats' reference and independent of what wrote it: every byte of a
 * sample of layers, every scale, what configurations claim, and the digests of the manifest.
 */
package org.sparkfp4.verify;
