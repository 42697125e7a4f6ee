import AVFoundation
import CoreImage
import SwiftUI

/// The camera's frames, one at a time, and what the model says of each; frames that come meanwhile are dropped.
/// The main thread alone changes what is published, and the queue alone what is private.
final class CameraModel: NSObject, ObservableObject, AVCaptureVideoDataOutputSampleBufferDelegate, @unchecked Sendable {
    @Published private(set) var recognitions: [Recognition] = []
    @Published private(set) var areShares = true
    @Published private(set) var message = ""
    @Published private(set) var isFrozen = false

    let session = AVCaptureSession()
    private let queue = DispatchQueue(label: "camera")
    private let context = CIContext()
    private var classifier: Classifier?
    private var average = DecayingAverage()
    private var isSetUp = false

    func start() {
        AVCaptureDevice.requestAccess(for: .video) { isAllowed in
            guard isAllowed else {
                self.show([], "The camera is not allowed; Settings can change that.")
                return
            }
            self.queue.async {
                if !self.isSetUp { self.setUp() }
                if self.isSetUp { self.session.startRunning() }
            }
        }
    }

    func stop() {
        queue.async { self.session.stopRunning() }
    }

    /// Holds the newest frame and what the model says of it, or goes on.
    func freeze() {
        isFrozen.toggle()
        if isFrozen { stop() } else { start() }
    }

    private func setUp() {
        do {
            guard let device = AVCaptureDevice.default(.builtInWideAngleCamera, for: .video, position: .back) else {
                show([], "There is no camera.")
                return
            }
            classifier = try Classifier()
            let input = try AVCaptureDeviceInput(device: device)
            let output = AVCaptureVideoDataOutput()
            output.alwaysDiscardsLateVideoFrames = true
            output.videoSettings = [kCVPixelBufferPixelFormatTypeKey as String: kCVPixelFormatType_32BGRA]
            output.setSampleBufferDelegate(self, queue: queue)
            session.beginConfiguration()
            session.sessionPreset = .vga640x480
            if session.canAddInput(input) { session.addInput(input) }
            if session.canAddOutput(output) { session.addOutput(output) }
            session.commitConfiguration()
            isSetUp = true
        } catch {
            show([], error.localizedDescription)
        }
    }

    func captureOutput(
        _ output: AVCaptureOutput, didOutput buffer: CMSampleBuffer, from connection: AVCaptureConnection
    ) {
        guard let frame = CMSampleBufferGetImageBuffer(buffer), let classifier else { return }
        // The sensor lies on its side; the phone is held upright.
        let upright = CIImage(cvPixelBuffer: frame).oriented(.right)
        guard let picture = context.createCGImage(upright, from: upright.extent) else { return }
        do {
            let begun = Date()
            let outputs = try classifier.run(picture)
            let milliseconds = 1000 * Date().timeIntervalSince(begun)
            let scores = average.adding(Classifier.ofClasses(outputs[0]))
            let found = Classifier.best(scores, threshold: average.areShares ? 0.05 : -.infinity)
            show(found, String(format: "%.1f ms", milliseconds), average.areShares)
        } catch {
            show([], error.localizedDescription)
        }
    }

    private func show(_ found: [Recognition], _ text: String, _ areShares: Bool = true) {
        DispatchQueue.main.async {
            self.recognitions = found
            self.areShares = areShares
            self.message = text
        }
    }
}
